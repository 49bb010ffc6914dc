"""Tensors that carry a mask: operations leave out what is not there."""

import copy
import pickle

import pytest

import cresset
from cresset.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from cresset.masked.maskedtensor.binary import BINARY_NAMES, INPLACE_BINARY_NAMES
from cresset.masked.maskedtensor.unary import INPLACE_UNARY_NAMES, UNARY_NAMES

MASK = [[True, False, True], [False, True, True]]


def mask():
    return cresset.tensor(MASK)


def data():
    return cresset.tensor([[0.5, 0.25, 0.75], [0.125, 0.375, 0.625]])


def masked(requires_grad=False):
    return masked_tensor(data(), mask(), requires_grad)


def there(tensor):
    """The elements that are there, in order; None for the others."""
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    flat = zip(tensor.get_data().flatten().tolist(), tensor.get_mask().flatten().tolist(), strict=True)
    return [number if on else None for number, on in flat]


def arguments(name):
    """What an operator of one tensor is called with beside it."""
    return {"pow": (2,), "clamp": (0.2, 0.5), "clip": (0.2, 0.5)}.get(name.rstrip("_"), ())


def domain(name):
    base = name.rstrip("_")
    if base.startswith("bitwise"):
        return cresset.tensor([[5, 1, 7], [2, 3, 6]])
    return data() + 1 if base in ("acosh", "arccosh") else data()


class TestWhatItIsMadeOf:
    def test_data_and_mask_are_copies(self):
        x, m = data(), mask()
        both = masked_tensor(x, m)
        x.zero_()
        m.fill_(False)
        assert there(both) == [0.5, None, 0.75, None, 0.375, 0.625]

    def test_it_is_a_tensor_with_its_shape_dtype_and_strides(self):
        both = masked_tensor(data().t(), mask().t())
        assert isinstance(both, cresset.Tensor) and is_masked_tensor(both) and not is_masked_tensor(both.get_data())
        assert both.shape == (3, 2) and both.dtype == cresset.float32 and both.stride() == (1, 3)
        assert not both.is_contiguous() and both.contiguous().get_data().is_contiguous()

    def test_as_text(self):
        assert repr(masked()) == (
            "MaskedTensor(\n  [\n    [  0.5000,       --,   0.7500],\n    [      --,   0.3750,   0.6250]\n  ]\n)"
        )
        assert repr(masked_tensor(cresset.tensor([7, 8]), cresset.tensor([True, False]))) == (
            "MaskedTensor(\n  [7,       --]\n)"
        )
        assert repr(masked_tensor(cresset.tensor(2.5), cresset.tensor(True))) == "MaskedTensor(  2.5000, True)"
        assert repr(masked_tensor(cresset.tensor(2.5), cresset.tensor(False))) == "MaskedTensor(--, False)"
        assert repr(masked().to_sparse()) == repr(masked())

    def test_to_tensor_says_what_stands_for_the_missing(self):
        assert masked().to_tensor(-1).tolist() == [[0.5, -1.0, 0.75], [-1.0, 0.375, 0.625]]
        assert type(masked().to_tensor(-1)) is cresset.Tensor

    def test_item_of_what_is_there_only(self):
        assert masked_tensor(cresset.tensor(2.5), cresset.tensor(True)).item() == 2.5
        with pytest.raises(ValueError, match="masked out"):
            masked_tensor(cresset.tensor(2.5), cresset.tensor(False)).item()

    def test_copies_and_pickles(self):
        for other in (copy.deepcopy(masked()), pickle.loads(pickle.dumps(masked())), masked().clone()):
            assert is_masked_tensor(other) and there(other) == there(masked())

    def test_conversion_keeps_the_mask(self):
        converted = masked().double()
        assert converted.dtype == cresset.float64 and converted.get_data().dtype == cresset.float64
        assert converted.get_mask().tolist() == MASK


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda: masked_tensor(1.0, mask()), TypeError, "data must be a Tensor"),
            (lambda: masked_tensor(masked(), mask()), TypeError, "data must be a Tensor"),
            (lambda: masked_tensor(data(), masked()), TypeError, "mask must be a Tensor"),
            (lambda: masked_tensor(data(), data()), TypeError, "mask must have dtype bool"),
            (lambda: masked_tensor(data(), mask()[0]), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
            (lambda: masked_tensor(data(), mask().t()), ValueError, r"data.size\(\) must equal mask.size\(\)"),
            (lambda: masked_tensor(data().to_sparse(), mask()), TypeError, "must have the same layout"),
            (
                lambda: masked_tensor(data().to_sparse_csc(), mask().to_sparse_csc()),
                TypeError,
                "data layout of torch.sparse_csc is not supported",
            ),
            (lambda: masked_tensor(data().to(cresset.complex64), mask()), TypeError, "complex64 is not supported"),
            (lambda: masked_tensor(data().bool(), mask(), True), RuntimeError, "can require gradients"),
            (lambda: masked() + masked_tensor(data(), ~mask()), ValueError, "Input masks must match"),
            (lambda: masked().add_(masked_tensor(data(), ~mask())), ValueError, "Input masks must match"),
            (lambda: data().add_(masked()), TypeError, "plain tensor cannot be changed in place"),
            (lambda: masked().to_sparse() + data(), TypeError, "one layout"),
            (lambda: cresset.cat([masked(), data()]), TypeError, "cat: masked and plain tensors do not go together"),
            (lambda: masked().max(), TypeError, "aten.max.default"),
            (lambda: masked().to_sparse().is_contiguous(), ValueError, "sparse data do not have is_contiguous"),
            (lambda: masked().to_sparse().sum(0), TypeError, r"sum: of a MaskedTensor with sparse data"),
            (lambda: masked()[0].to_sparse_csr(), ValueError, "Only 2D tensors"),
        ],
    )
    def test_what_does_not_fit(self, make, error, text):
        with pytest.raises(error, match=text):
            make()

    def test_places_of_sparse_data_have_to_be_those_of_the_mask(self):
        places = cresset.tensor([[0, 1], [2, 0]]), cresset.tensor([[0, 1], [2, 1]])
        values = cresset.sparse_coo_tensor(places[0], cresset.ones(2), (2, 3))
        on = cresset.sparse_coo_tensor(places[1], cresset.ones(2).bool(), (2, 3))
        with pytest.raises(ValueError, match="COO tensors but do not have the same indices"):
            masked_tensor(values, on)
        with pytest.raises(ValueError, match="CSR tensors but do not share either crow or col indices"):
            masked_tensor(values.to_sparse_csr(), on.to_sparse_csr())

    def test_history_is_not_kept_and_that_is_said(self):
        with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
            made = masked_tensor(data().requires_grad_(), mask())
        assert made.is_leaf and not made.requires_grad


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
class TestElementByElement:
    """What every operator of one or two tensors promises, whatever the layout of the data."""

    def laid(self, tensor, layout):
        return {"strided": tensor.to_dense, "sparse_coo": tensor.to_sparse, "sparse_csr": tensor.to_sparse_csr}[
            layout
        ]()

    @pytest.mark.parametrize("name", UNARY_NAMES + INPLACE_UNARY_NAMES)
    def test_of_one(self, name, layout):
        run = getattr(cresset.Tensor, name)
        x = domain(name)
        given = self.laid(masked_tensor(x, mask()), layout)
        result = run(given, *arguments(name))
        expected = run(x.clone(), *arguments(name))
        assert is_masked_tensor(result) and str(result.layout) == f"torch.{layout}"
        assert there(result) == there(masked_tensor(expected, mask()))
        assert result is given or not name.endswith("_")

    @pytest.mark.parametrize("name", BINARY_NAMES + INPLACE_BINARY_NAMES)
    def test_of_two(self, name, layout):
        run = cresset.ops.aten.__getattr__(name)
        x = domain(name)
        y = x.flip(1)
        result = run(self.laid(masked_tensor(x, mask()), layout), self.laid(masked_tensor(y, mask()), layout))
        assert there(result) == there(masked_tensor(run(x.clone(), y), mask()))

    def test_with_numbers_and_keywords(self, layout):
        x = self.laid(masked(), layout)
        assert there(x + 1) == there(1 + x) == [1.5, None, 1.75, None, 1.375, 1.625]
        assert there(cresset.add(x, x, alpha=2)) == [1.5, None, 2.25, None, 1.125, 1.875]

    def test_gradient_has_the_mask(self, layout):
        x = masked(requires_grad=True)
        self.laid(x, layout).square().sum().backward()
        assert there(x.grad) == [1.0, None, 1.5, None, 0.75, 1.25]


def test_a_plain_operand_broadcasts_and_gets_a_plain_sum():
    row = cresset.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = masked(requires_grad=True)
    product = x * row
    assert there(product) == [0.5, None, 2.25, None, 0.75, 1.875]
    product.sum().backward()
    assert there(x.grad) == [1.0, None, 3.0, None, 2.0, 3.0]
    assert there(row.grad) == [0.5, 0.375, 1.375]


class TestReductions:
    @pytest.mark.parametrize(
        ("name", "whole", "by_column"),
        [
            ("sum", 2.25, [0.5, 0.375, 1.375]),
            ("mean", 0.5625, [0.5, 0.375, 0.6875]),
            ("prod", 0.087890625, [0.5, 0.375, 0.46875]),
            ("amax", 0.75, [0.5, 0.375, 0.75]),
            ("amin", 0.375, [0.5, 0.375, 0.625]),
            ("argmax", 2.0, [0.0, 1.0, 0.0]),
            ("argmin", 4.0, [0.0, 1.0, 1.0]),
        ],
    )
    def test_of_what_is_there(self, name, whole, by_column):
        x = masked()
        assert there(getattr(x, name)()) == [whole]
        assert there(getattr(cresset, name)(x)) == [whole]
        assert there(getattr(x, name)(dim=0)) == by_column
        assert getattr(x, name)(0, keepdim=True).shape == (1, 3)

    def test_var_std_norm_and_all(self):
        x = masked_tensor(cresset.tensor([[3.0, 9.0, 4.0]]), cresset.tensor([[True, False, True]]))
        assert there(x.var()) == [0.5] and there(x.var(1, unbiased=False)) == [0.25]
        assert there(x.std(dim=1, correction=0)) == [0.5]
        assert there(x.norm()) == [5.0] and there(x.norm(1, dim=1)) == [7.0]
        y = masked_tensor(cresset.tensor([[True, False], [True, True]]), cresset.tensor([[True, False], [True, True]]))
        assert there(y.all()) == [True] and there(y.all(dim=1)) == [True, True]

    def test_a_slice_without_elements_is_not_there(self):
        x = masked_tensor(cresset.ones(2, 2), cresset.tensor([[True, False], [True, False]]))
        assert there(x.sum(0)) == [2.0, None] and there(x.amax(0)) == [1.0, None]
        assert not masked_tensor(cresset.ones(2), cresset.tensor([False, False])).sum().get_mask().item()

    def test_sparse_data_reduces_as_a_whole(self):
        for x in (masked().to_sparse(), masked().to_sparse_csr()):
            assert there(x.sum()) == [2.25] and there(x.amax()) == [0.75]
        assert there(masked().to_sparse().argmin()) == [4]

    def test_masked_functions_take_masked_tensors(self):
        assert cresset.masked.sum(masked(), 0).tolist() == [0.5, 0.375, 1.375]


class TestGradients:
    def test_of_a_leaf(self):
        x = masked(requires_grad=True)
        x.mean(1).sum().backward()
        assert there(x.grad) == [0.5, None, 0.5, None, 0.5, 0.5]

    def test_as_masked_tensor_leaves_out_what_would_be_nan(self):
        x = cresset.tensor([1.0, 1.0], requires_grad=True)
        divisor = cresset.tensor([0.0, 1.0])
        as_masked_tensor(x / divisor, divisor != 0).sum().backward()
        assert there(x.grad) == [None, 1.0]

    def test_softmax_of_what_is_there(self):
        x = masked_tensor(
            cresset.tensor([[1.0, 50.0, 1.0], [2.0, 3.0, 4.0]]), cresset.tensor([[True, False, True]] * 2), True
        )
        x = x * 1
        x.retain_grad()
        result = cresset.softmax(x, -1)
        assert there(result)[:3] == [0.5, None, 0.5]
        (result * cresset.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).sum().backward()
        assert there(x.grad) == [0.25, None, -0.25, 0.0, None, 0.0]

    def test_where_takes_masks_along(self):
        x, y = masked(True), masked_tensor(cresset.ones(2, 3), ~mask(), True)
        result = cresset.where(mask(), x, y)
        assert there(result) == [0.5, 1.0, 0.75, 1.0, 0.375, 0.625]
        result.sum().backward()
        assert there(x.grad) == [1.0, None, 1.0, None, 1.0, 1.0]
        assert there(y.grad) == [None, 1.0, None, 1.0, None, None]


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x[0],
        lambda x: x[:, 1:],
        lambda x: x.t(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.view(3, 2),
        lambda x: x.reshape(-1),
        lambda x: x.flatten(),
        lambda x: x.unsqueeze(1),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.unsqueeze(0).expand(2, 2, 3),
        lambda x: x.unfold(1, 2, 1),
        lambda x: cresset.cat([x, x]),
        lambda x: cresset.stack([x, x], 1),
        lambda x: x.split([1, 2], 1)[1],
        lambda x: x.unbind(0)[1],
        lambda x: x[cresset.tensor([1, 0, 1])],
        lambda x: x.index_select(1, cresset.tensor([2, 0])),
        lambda x: x.flip(0),
        lambda x: x.diagonal(),
        lambda x: cresset.nn.functional.unfold(x.view(1, 1, 2, 3), (1, 2)),
    ],
)
def test_what_moves_elements_moves_the_mask_and_gradients_back(move):
    x = masked(requires_grad=True)
    result = move(x)
    assert cresset.equal(result.get_data(), move(data())) and cresset.equal(
        result.get_mask(), move(mask().float()) != 0
    )
    result.sum().backward()
    plain = data().masked_fill(~mask(), 0).requires_grad_()
    (move(plain) * move(mask().float())).sum().backward()
    assert x.grad.to_tensor(0).tolist() == plain.grad.tolist()


def test_layouts_and_back():
    x = masked(requires_grad=True)
    coo, csr = x.to_sparse(), x.to_sparse_csr()
    assert coo.is_sparse and coo.is_sparse_coo() and coo.get_data()._nnz() == 4
    assert csr.is_sparse and csr.is_sparse_csr() and not x.is_sparse
    assert there(coo.to_dense()) == there(csr.to_dense()) == there(x)
    (coo.to_dense() * 2).sum().backward()
    assert there(x.grad) == [2.0, None, 2.0, None, 2.0, 2.0]


def test_masked_tensors_are_in_pytorchs_places():
    from cresset.masked.maskedtensor.core import MaskedTensor as inner

    assert inner is MaskedTensor and cresset.masked.masked_tensor is masked_tensor
