"""Sparse tensors of coordinates."""

import copy
import pickle
import subprocess
import sys

import pytest

import cresset


@pytest.fixture
def matrix():
    """[[0, 0, 3], [4, 0, 5]] with the 5 in two parts, out of order."""
    return cresset.sparse_coo_tensor([[1, 0, 1, 1], [2, 2, 0, 2]], [2.0, 3.0, 4.0, 3.0], (2, 3))


DENSE = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]


def test_values_at_one_index_add_up(matrix):
    assert matrix.to_dense().tolist() == DENSE
    assert not matrix.is_coalesced()
    joined = matrix.coalesce()
    assert joined.is_coalesced() and joined._nnz() == 3
    assert joined.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert joined.values().tolist() == [3.0, 4.0, 5.0]


def test_it_says_what_it_is(matrix):
    assert matrix.layout == cresset.sparse_coo and matrix.is_sparse and not matrix.is_sparse_csr
    assert isinstance(matrix, cresset.Tensor)
    assert tuple(matrix.shape) == (2, 3) and matrix.numel() == 6 and matrix.dim() == 2 and len(matrix) == 2
    assert matrix.sparse_dim() == 2 and matrix.dense_dim() == 0 and matrix.stride() == (0, 0)
    assert matrix.type() == "torch.sparse.FloatTensor"


def test_it_prints_indices_and_values():
    assert repr(cresset.tensor([[0.0, 3.0]]).to_sparse()) == (
        "tensor(indices=tensor([[0],\n                       [1]]),\n       values=tensor([3.]),\n"
        "       size=(1, 2), nnz=1, layout=torch.sparse_coo)"
    )


def test_the_size_is_inferred_from_the_indices():
    assert tuple(cresset.sparse_coo_tensor([[0, 4]], cresset.ones(2, 3)).shape) == (5, 3)
    assert tuple(cresset.sparse_coo_tensor(size=(2, 3)).shape) == (2, 3)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (([[0, 2]], [1.0, 2.0], (2,)), "for dim 0, size is 2 but found index 2"),
        (([[-1]], [1.0], (2,)), "found negative index -1 for dim 0"),
        (([[0]], [1.0], (2, 2)), "len\\(size\\) == sparse_dim"),
        (([[0, 1]], [1.0], (2,)), "must have same nnz"),
    ],
)
def test_parts_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.sparse_coo_tensor(*arguments)


def test_indices_of_an_uncoalesced_tensor_are_refused(matrix):
    with pytest.raises(RuntimeError, match="uncoalesced"):
        matrix.indices()
    with pytest.raises(RuntimeError, match="expected sparse coordinate tensor layout but got Strided"):
        cresset.ones(2).coalesce()


def test_what_has_no_rule_names_the_way_out(matrix):
    with pytest.raises(
        NotImplementedError, match=r"exp: not implemented for sparse_coo tensors; call to_dense\(\) first"
    ):
        matrix.exp()
    with pytest.raises(TypeError, match="numpy"):
        matrix.numpy()


def test_sums_and_products_with_sparse_dense_and_numbers(matrix):
    ones = cresset.ones(2, 3)
    assert (matrix + matrix).to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    assert (ones - matrix).tolist() == [[1.0, 1.0, -2.0], [-3.0, 1.0, -4.0]]
    assert (matrix * 2).to_dense().tolist() == (2 * matrix).to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    assert (matrix / 2).to_dense().tolist() == [[0.0, 0.0, 1.5], [2.0, 0.0, 2.5]]
    assert (matrix * (ones * 3)).is_sparse
    assert (matrix * matrix).to_dense().tolist() == [[0.0, 0.0, 9.0], [16.0, 0.0, 25.0]]
    other = cresset.tensor([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]]).to_sparse()
    assert (matrix * other).to_dense().tolist() == [[0.0, 0.0, 0.0], [8.0, 0.0, 0.0]]
    assert ones.clone().add_(matrix).tolist() == [[1.0, 1.0, 4.0], [5.0, 1.0, 6.0]]
    with pytest.raises(RuntimeError, match="would make a dense result"):
        matrix + 1


def test_functions_of_values_keep_the_zeros(matrix):
    assert matrix.square().to_dense().tolist() == [[0.0, 0.0, 9.0], [16.0, 0.0, 25.0]]
    assert (-matrix).abs().sqrt().to_dense()[1, 0].item() == 2.0
    assert (matrix**2).to_dense().tolist() == [[0.0, 0.0, 9.0], [16.0, 0.0, 25.0]]
    assert not matrix.isnan().to_dense().any()
    with pytest.raises(RuntimeError, match="zeroth power"):
        matrix**0


def test_reductions(matrix):
    assert matrix.sum().item() == 12.0
    assert matrix.sum(0).to_dense().tolist() == [4.0, 0.0, 8.0]
    assert matrix.sum(1, keepdim=True).to_dense().tolist() == [[3.0], [9.0]]
    assert matrix.sum((0, 1)).item() == 12.0
    assert cresset.sparse.sum(matrix, 1).to_dense().tolist() == [3.0, 9.0]
    assert matrix.norm().item() == pytest.approx(50**0.5)
    assert bool(matrix.any())


def test_shapes_change_by_moving_places(matrix):
    dense = cresset.tensor(DENSE)
    assert matrix.t().to_dense().tolist() == dense.t().tolist()
    assert matrix.unsqueeze(1).to_dense().tolist() == dense.unsqueeze(1).tolist()
    assert matrix.unsqueeze(0).squeeze(0).to_dense().tolist() == DENSE
    assert matrix[1].to_dense().tolist() == DENSE[1]
    assert matrix[1, 2].item() == 5.0
    assert matrix[0:1].to_dense().tolist() == DENSE[:1]
    assert matrix.index_select(1, cresset.tensor([2, 0, 2])).to_dense().tolist() == dense[:, [2, 0, 2]].tolist()
    assert matrix.narrow_copy(1, 1, 2).to_dense().tolist() == dense[:, 1:].tolist()
    assert cresset.cat([matrix, matrix]).to_dense().tolist() == DENSE + DENSE
    assert cresset.stack([matrix, matrix], 1).to_dense().tolist() == cresset.stack([dense, dense], 1).tolist()
    assert [row.to_dense().tolist() for row in matrix] == DENSE


def test_dense_dimensions_lie_in_the_values():
    x = cresset.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    s = x.to_sparse(1)
    assert s.sparse_dim() == 1 and s.dense_dim() == 1
    assert s.indices().tolist() == [[1, 2]] and s.values().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert s.to_dense().tolist() == x.tolist()
    assert cresset.cat([s, s], 1).to_dense().tolist() == cresset.cat([x, x], 1).tolist()
    assert s.sum(1).to_dense().tolist() == [0.0, 1.0, 2.0]


def test_products(matrix):
    dense, right = cresset.tensor(DENSE), cresset.arange(6.0).reshape(3, 2)
    expected = (dense @ right).tolist()
    assert (matrix @ right).tolist() == cresset.sparse.mm(matrix, right).tolist() == expected
    assert (right.t() @ matrix.t()).tolist() == cresset.tensor(expected).t().tolist()
    assert (matrix @ right[:, 0]).tolist() == [row[0] for row in expected]
    assert (matrix @ right.to_sparse()).to_dense().tolist() == expected
    assert cresset.addmm(cresset.ones(2, 2), matrix, right).tolist() == [[v + 1 for v in row] for row in expected]
    assert cresset.smm(matrix, right).to_dense().tolist() == expected
    assert cresset.hspmm(matrix, right).to_dense().tolist() == expected
    assert cresset.spmm(matrix, right).tolist() == expected
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        matrix @ cresset.ones(2, 2)


def test_softmax_counts_only_what_is_kept(matrix):
    p = cresset.sparse.softmax(matrix, 1).to_dense()
    assert p[0].tolist() == [0.0, 0.0, 1.0]
    assert p[1, 1].item() == 0 and p[1].sum().item() == pytest.approx(1)
    assert p[1, 2].item() == pytest.approx(1 / (1 + 2.718281828**-1), rel=1e-6)
    logs = cresset.sparse.log_softmax(matrix, 1).coalesce().values()
    assert logs[0].item() == 0 and logs[2].item() == pytest.approx(p[1, 2].log().item())


def test_copies_are_copies(matrix):
    for other in (copy.deepcopy(matrix), pickle.loads(pickle.dumps(matrix)), matrix.clone()):
        assert other.layout == cresset.sparse_coo and other.to_dense().tolist() == DENSE
        other._values().zero_()
        assert matrix.to_dense().tolist() == DENSE
    assert matrix.double().dtype == cresset.float64 and matrix.to(cresset.float16).is_sparse


def test_changes_in_place(matrix):
    matrix.mul_(2)
    assert matrix.to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    matrix.sparse_resize_((3, 3), 2, 0)
    assert matrix.to_dense()[2].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="shrinking the size"):
        matrix.sparse_resize_((1, 1), 2, 0)
    matrix.zero_()
    assert matrix._nnz() == 0 and cresset.zeros_like(matrix)._nnz() == 0


def test_gradients_reach_values_and_dense_operands():
    values = cresset.tensor([2.0, 3.0], requires_grad=True)
    right = cresset.tensor([[1.0], [5.0]], requires_grad=True)
    s = cresset.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2))
    assert s.requires_grad and not s.is_leaf
    (s @ right).sum().backward()
    assert values.grad.tolist() == [5.0, 1.0]
    assert right.grad.tolist() == [[3.0], [2.0]]


def test_a_sparse_leaf_has_a_sparse_gradient():
    s = cresset.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2), requires_grad=True)
    assert s.is_leaf and s.grad is None
    (s.to_dense() ** 2).sum().backward()
    assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0.0, 4.0], [6.0, 0.0]]
    assert s.grad is s.grad
    (g,) = cresset.autograd.grad(s.sum(), s)
    assert g.is_sparse and g._values().tolist() == [1.0, 1.0]


def test_gradients_of_dense_tensors_through_sparse_forms():
    x = cresset.tensor([[0.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x.sparse_mask(cresset.eye(2).to_sparse()).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    x.grad = None
    (x.to_sparse() * 3).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0], [3.0, 3.0]]


def test_derivatives_agree_with_finite_differences():
    v = cresset.tensor([0.3, -0.7, 1.1, 0.4], dtype=cresset.float64, requires_grad=True)
    d = cresset.linspace(-1, 1, 6, dtype=cresset.float64).reshape(3, 2).requires_grad_()
    index = cresset.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])

    def product(v, d):
        return cresset.sparse_coo_tensor(index, v, (2, 3)) @ d

    assert cresset.autograd.gradcheck(product, (v, d)) and cresset.autograd.gradgradcheck(product, (v, d))
    for function in (
        lambda v: cresset.sparse.softmax(cresset.sparse_coo_tensor(index, v, (2, 3)), 1).to_dense(),
        lambda v: (
            cresset.sparse_coo_tensor(index, v, (2, 3)) @ cresset.sparse_coo_tensor(index, v, (2, 3)).t()
        ).to_dense(),
        lambda v: cresset.sparse_coo_tensor(index, v, (2, 3)).square().sum(1).to_dense(),
    ):
        assert cresset.autograd.gradcheck(function, (v,))


def test_an_element_keeps_the_dtype():
    twice = cresset.sparse_coo_tensor([[0, 0], [2, 2]], cresset.tensor([3, 4], dtype=cresset.int16), (2, 3))
    assert twice[0, 2].dtype == cresset.int16 and twice[0, 2].item() == 7


def test_the_norm_of_no_complex_numbers_is_real():
    assert cresset.sparse_coo_tensor(size=(2, 0), dtype=cresset.complex64).norm().dtype == cresset.float32


def test_a_tensor_is_transposed_in_place_with_its_indices():
    dense = cresset.arange(24.0).reshape(2, 3, 4)
    for i, j in ((0, 1), (0, 2), (1, 2), (-1, 0)):
        sparse = dense.to_sparse()
        assert sparse.transpose_(i, j) is sparse
        assert sparse.shape == dense.transpose(i, j).shape and cresset.equal(sparse.to_dense(), dense.transpose(i, j))
    assert dense[0].to_sparse().t_().to_dense().tolist() == dense[0].T.tolist()


@pytest.mark.parametrize("sparse_dim", [1, 2, 3])
def test_products_broadcast(sparse_dim):
    a, b = cresset.arange(12.0).reshape(2, 1, 6), cresset.arange(18.0).reshape(1, 3, 6)
    for first in (a, a.to_sparse(sparse_dim)):
        for second in (b, b.to_sparse(sparse_dim)):
            assert cresset.equal((first * second).to_dense(), a * b)
    assert cresset.equal((a.to_sparse(sparse_dim) * cresset.tensor(2.0).to_sparse()).to_dense(), a * 2)
    assert cresset.equal(cresset._sparse_broadcast_to(b.to_sparse(sparse_dim), (2, 3, 6)).to_dense(), b.expand(2, 3, 6))
    with pytest.raises(RuntimeError, match="does not broadcast"):
        cresset._sparse_broadcast_to(b.to_sparse(sparse_dim), (2, 6))


def test_complex_values_are_seen_as_pairs_and_back():
    sparse = cresset.tensor([[1 + 2j, 0], [0, 3j]]).to_sparse()
    pairs = cresset.view_as_real(sparse)
    assert pairs.shape == (2, 2, 2) and pairs.dense_dim() == 1 and pairs.values().tolist() == [[1.0, 2.0], [0.0, 3.0]]
    assert cresset.equal(cresset.view_as_complex(pairs).to_dense(), sparse.to_dense())
    with pytest.raises(RuntimeError, match="last dim == 2 and dense_dim > 0"):
        cresset.view_as_complex(cresset.ones(2, 2).to_sparse())


def test_dimensions_to_permute_are_named():
    sparse = cresset.arange(6.0).reshape(1, 2, 3).to_sparse()
    assert sparse.permute(dims=(2, 0, 1)).shape == (3, 1, 2)
    with pytest.raises(RuntimeError, match="does not match the length"):
        sparse.permute(dims=(1, 0))
    with pytest.raises(RuntimeError, match="duplicate dims"):
        sparse.permute(dims=(1, 1, 1))


def test_products_say_what_does_not_fit():
    a, eye = cresset.ones(2, 3).to_sparse(), cresset.eye(2)
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x2\)"):
        cresset.mm(a, eye)
    with pytest.raises(RuntimeError, match=r"expected self.size\(-1\) == vec.size\(-1\)"):
        cresset.mv(a, cresset.ones(2))
    with pytest.raises(RuntimeError, match="expected 'mat1' to have sparse layout, got 'mat1' with layout Strided"):
        cresset.sspaddmm(a, eye, eye)
    with pytest.raises(RuntimeError, match="Sparse floor division requires"):
        a // a


def test_bytes_are_no_sizes():
    with pytest.raises(TypeError, match="argument 'size' must be tuple of ints, not bytes"):
        cresset.sparse_coo_tensor(size=b"x")


class TestWhetherItIsKnownToBeCoalesced:
    def test_a_copy_knows_what_its_source_does(self):
        x = cresset.sparse_coo_tensor([[1]], [2.0], (3,))
        assert x.is_coalesced()
        x._coalesced_(False)
        for same in (x.clone(), x.detach(), x.to(cresset.float64), -x):
            assert not same.is_coalesced()
        assert x.coalesce().is_coalesced()

    def test_other_orders_of_dimensions_are_not_known_to_be(self, matrix):
        x = matrix.coalesce()
        assert x.permute(0, 1).is_coalesced() and not x.permute(1, 0).is_coalesced()

    @pytest.mark.parametrize("name", ["sin_", "abs_", "log1p_", "relu_", "nan_to_num_"])
    def test_functions_in_place_need_it(self, name):
        x = cresset.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
        with pytest.raises(RuntimeError, match=f"{name} requires coalesced input"):
            getattr(x, name)()
        expected = getattr(x.to_dense(), name)()
        assert getattr(x.coalesce(), name)().to_dense().tolist() == expected.tolist()


class TestSums:
    def test_an_empty_tensor_adds_nothing_however_its_dimensions_are_split(self):
        x = cresset.sparse_coo_tensor([[0]], cresset.ones(1, 2), (3, 2))
        nothing = cresset.sparse_coo_tensor((3, 2))
        assert (x + nothing).to_dense().tolist() == (nothing + x).to_dense().tolist() == x.to_dense().tolist()

    def test_a_dense_tensor_does_not_broadcast(self, matrix):
        for wrong in (cresset.ones(1), cresset.ones(5, 5)):
            with pytest.raises(RuntimeError, match="expected 'self' and 'other' to have same size"):
                wrong + matrix

    def test_dense_tensors_without_elements(self):
        x = cresset.sparse_coo_tensor(cresset.empty(2, 0), cresset.empty(0, 2, 0), (3, 2, 2, 0))
        assert (cresset.ones(3, 2, 2, 0) + x).shape == (3, 2, 2, 0)

    def test_batches_of_matrices(self):
        x = cresset.arange(1.0, 17.0).reshape(2, 2, 4).to_sparse_csr()
        y = cresset.ones(2, 2, 4).to_sparse_csr()
        assert (x + y).layout == cresset.sparse_csr
        assert (x + y).to_dense().tolist() == (x.to_dense() + 1).tolist()


def test_a_dense_tensor_is_multiplied_in_place():
    dense = cresset.full((2, 2), 3.0)
    assert dense.mul_(cresset.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()) is dense
    assert dense.tolist() == [[3.0, 0.0], [0.0, 6.0]]


def test_methods_of_the_base_class_are_those_of_the_layout(matrix):
    assert cresset.Tensor.to_dense(matrix).layout == cresset.strided
    assert cresset.Tensor.sparse_dim(matrix) == 2 and cresset.Tensor.dense_dim(matrix) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.norm(keepdim=True), "does not support keepdim"),
        (lambda x: x.norm(p=1, dtype=cresset.float64), "does not support 'dtype'"),
        (lambda x: x.mv(x), "two tensor dim should be 2 and 1"),
        (lambda x: cresset.sparse.mm(x, x.half()), "mat1 dtype Float does not match mat2 dtype Half"),
        (lambda x: cresset.cat([x, x.to_dense()]), "a dense tensor was found at position 1"),
        (lambda x: cresset.cat([x, x.to_dense().to_sparse(1)]), "same sparse_dim and dense_dim: 2, 0"),
        (lambda x: x.narrow_copy(-1, 0, 1), "Dimension -1 out of range"),
        (lambda x: x.to_dense().to_sparse(blocksize=(1,)), "blocksize needs to be a tuple of size 2, but got 1"),
        (lambda x: x.to(cresset.int64).requires_grad_(), "floating point dtype can require gradients"),
        (lambda x: x.unsqueeze(0).to_sparse_csr(), "sparse_dim..!=2 is not supported"),
    ],
)
def test_refusals_say_why(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(cresset.eye(3).to_sparse())


class TestSpdiags:
    def test_no_diagonal_or_no_room_gives_zeros(self):
        zeros = cresset.empty(0, dtype=cresset.int64)
        assert cresset.sparse.spdiags(cresset.empty(0, 3), zeros, (3, 3)).to_dense().tolist() == [[0.0] * 3] * 3
        assert cresset.sparse.spdiags(cresset.ones(1, 3), cresset.tensor([0]), (0, 4)).to_dense().shape == (0, 4)

    def test_arguments_are_checked(self):
        ones, at = cresset.ones(1, 3), cresset.tensor([0])
        for args, words in (
            ((ones, at, (3, 3, 3)), "Output shape must be 2d"),
            ((ones, at.reshape(1, 1), (3, 3)), "Offsets must be scalar or vector"),
            ((ones.reshape(1, 1, 3), at, (3, 3)), "Diagonals must be vector or matrix"),
            ((ones, at.int(), (3, 3)), "must have dtype Long"),
            ((ones, at, (3, 3), cresset.strided), "Only output layouts"),
        ):
            with pytest.raises(RuntimeError, match=words):
                cresset.sparse.spdiags(*args)


def test_real_and_complex_views_say_whose_values_they_show():
    pairs = cresset.sparse_coo_tensor(cresset.tensor([[0, 2]]), cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2))
    numbers = cresset.view_as_complex(pairs)
    assert numbers._is_view() and numbers._base is pairs and not pairs._is_view()
    again = cresset.view_as_real(numbers)
    assert again._base is pairs
    assert again._values().data_ptr() == pairs._values().data_ptr()


def test_a_layout_that_is_asked_for_is_that_of_the_output():
    with pytest.raises(RuntimeError, match="layout torch.sparse_coo does not match layout of out parameter"):
        cresset.zeros(3, layout=cresset.sparse_coo, out=cresset.zeros(3))
    out = cresset.zeros(2, layout=cresset.sparse_coo)
    assert cresset.zeros(3, layout=cresset.sparse_coo, out=out) is out and out.shape == (3,)


@pytest.mark.parametrize("values", [[1.0, 1.0], [2.0]], ids=["as many as elements", "fewer"])
def test_a_dense_tensor_takes_a_sparse_gradient(values):
    sparse = cresset.sparse_coo_tensor([[1] * len(values)], values, (2,))
    x = cresset.ones(2, requires_grad=True)
    x.backward(sparse)
    assert x.grad.layout == cresset.sparse_coo and x.grad.to_dense().tolist() == [0.0, 2.0]
    (gradient,) = cresset.autograd.grad(x * 3, x, sparse)
    assert gradient.tolist() == [0.0, 6.0]
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x[:1] * 3).backward(sparse)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_sparse_gradient_is_added_to_a_sparse_one_in_place():
    x = cresset.ones(2, requires_grad=True)
    sparse = cresset.sparse_coo_tensor([[1, 1]], [1.0, 1.0], (2,))
    x.grad = kept = sparse.clone()
    x.backward(sparse)
    assert x.grad is kept and kept.to_dense().tolist() == [0.0, 4.0]
    x.backward(sparse, create_graph=True)
    assert x.grad is not kept and kept.to_dense().tolist() == [0.0, 4.0]
    x.backward(cresset.ones(2))
    assert x.grad.tolist() == [1.0, 7.0]


def test_a_layout_is_understood_before_anything_sparse_was_touched():
    program = "import cresset; print(cresset.zeros(2, layout=cresset.sparse_coo).to_dense().tolist())"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "[0.0, 0.0]\n"
    )


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bool])
def test_the_dense_form_is_a_tensor_of_its_own(shape, dtype):
    whole = (cresset.arange(float(cresset.Size(shape).numel())) % 2).reshape(shape).to(dtype)
    layouts = [whole.to_sparse(), whole.to_sparse(1), whole.to_sparse_csr()]
    for sparse in layouts:
        dense = sparse.to_dense()
        assert not dense._is_view()
        assert cresset.equal(dense.detach_(), whole)
