"""Nested tensors: batches of tensors of different sizes."""

import copy
import pickle

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F  # noqa: N812

A, B = [[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
BOTH = [cresset.strided, cresset.jagged]


def batch(layout=cresset.jagged, **kwargs):
    return cresset.nested.nested_tensor([cresset.tensor(A), cresset.tensor(B)], layout=layout, **kwargs)


def lists(nested):
    return [item.tolist() for item in nested.unbind()]


@pytest.mark.parametrize("layout", BOTH, ids=str)
class TestBothLayouts:
    def test_components_come_back(self, layout):
        nt = batch(layout)
        assert nt.is_nested and nt.layout == layout and isinstance(nt, cresset.Tensor)
        assert lists(nt) == [A, B] and nt[1].tolist() == B and nt[0, 1].tolist() == A[1]
        assert nt.dim() == 3 and nt.size(0) == 2 and nt.size(-1) == 2 and nt.numel() == 10

    def test_padding_fills_up(self, layout):
        nt = batch(layout)
        assert nt.to_padded_tensor(-1.0).tolist() == [[*A, [-1.0, -1.0]], B]
        assert tuple(nt.to_padded_tensor(0.0, (2, 4, 2)).shape) == (2, 4, 2)
        with pytest.raises(RuntimeError, match="Truncation"):
            nt.to_padded_tensor(0.0, (2, 1, 2))

    def test_elementwise(self, layout):
        nt = batch(layout)
        double = [[[2 * v for v in row] for row in item] for item in (A, B)]
        assert lists(nt * 2) == lists(nt + nt) == double
        assert lists(nt * cresset.tensor([1.0, 0.0]))[0] == [[0.0, 0.0], [2.0, 0.0]]
        assert lists(nt * cresset.tensor([1.0, 10.0]).reshape(2, 1, 1))[1][0] == [40.0, 50.0]
        assert lists(-nt.relu())[0] == [[0.0, -1.0], [-2.0, -3.0]]
        with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
            nt + cresset.nested.nested_tensor([cresset.tensor(B), cresset.tensor(A)], layout=layout)

    def test_layers(self, layout):
        nt = batch(layout)
        linear, norm = nn.Linear(2, 3), nn.LayerNorm(2)
        for got, item in zip(linear(nt).unbind(), (A, B), strict=True):
            assert cresset.allclose(got, linear(cresset.tensor(item)))
        for got, item in zip(norm(nt).unbind(), (A, B), strict=True):
            assert cresset.allclose(got, norm(cresset.tensor(item)))
        assert lists(nt @ cresset.tensor([[1.0], [1.0]]))[0] == [[1.0], [5.0]]
        assert lists(F.dropout(nt, 0.5, training=False)) == [A, B]

    def test_softmax_and_sums(self, layout):
        nt = batch(layout)
        assert [round(sum(row), 5) for item in lists(nt.softmax(-1)) for row in item] == [1.0] * 5
        columns = nt.softmax(1).sum(1)
        assert cresset.allclose(columns, cresset.ones(2, 2))
        assert nt.sum().item() == 45.0 and nt.sum(1).tolist() == [[2.0, 4.0], [18.0, 21.0]]
        assert lists(nt.sum(-1)) == [[1.0, 5.0], [9.0, 13.0, 17.0]]
        assert nt.mean(1).tolist() == [[1.0, 2.0], [6.0, 7.0]]

    def test_shapes(self, layout):
        nt = batch(layout)
        assert lists(nt.transpose(1, 2))[0] == [[0.0, 2.0], [1.0, 3.0]]
        assert [tuple(t.shape) for t in nt.unsqueeze(-1).unbind()] == [(2, 2, 1), (3, 2, 1)]
        assert [tuple(t.shape) for t in nt.unflatten(-1, (2, 1)).unbind()] == [(2, 2, 1), (3, 2, 1)]
        assert lists(nt.chunk(2, -1)[1])[0] == [[1.0], [3.0]]
        assert lists(cresset.cat([nt, nt], -1))[0] == [[0.0, 1.0, 0.0, 1.0], [2.0, 3.0, 2.0, 3.0]]

    def test_gradients(self, layout):
        nt = batch(layout, requires_grad=True)
        assert nt.is_leaf and nt.requires_grad
        (nt * nt).to_padded_tensor(0.0).sum().backward()
        assert nt.grad.is_nested and lists(nt.grad) == [[[2 * v for v in row] for row in item] for item in (A, B)]

    def test_copies(self, layout):
        for other in (copy.deepcopy(batch(layout)), pickle.loads(pickle.dumps(batch(layout))), batch(layout).clone()):
            assert lists(other) == [A, B] and other.layout == layout
        assert batch(layout).to(cresset.float64).dtype == cresset.float64


def test_it_prints_as_its_layout_does():
    assert repr(batch(cresset.strided)).startswith("nested_tensor([\n  tensor([[0., 1.],\n          [2., 3.]]),\n")
    shown = repr(batch())
    assert shown.startswith("NestedTensor(size=(2, j") and shown.endswith("offsets=tensor([0, 2, 5]), contiguous=True)")


def test_the_jagged_layout_shows_its_parts():
    nt = batch()
    assert nt.offsets().tolist() == [0, 2, 5] and nt.lengths() is None and nt.values().tolist() == A + B
    assert nt.shape[1] == nt.size(1) == (nt * 2).size(1) and nt.size(1) != batch().size(1)
    assert lists(nt.reshape(2, nt.size(1), 2, 1))[0][0] == [[0.0], [1.0]]
    with pytest.raises(RuntimeError, match="jagged layout only allows"):
        cresset.nested.nested_tensor([cresset.ones(2, 3), cresset.ones(3, 4)], layout=cresset.jagged)


def test_the_strided_layout_takes_several_ragged_dimensions():
    nt = cresset.nested.nested_tensor([cresset.ones(1, 2), cresset.ones(2, 1)])
    assert lists(nt + 1) == [[[2.0, 2.0]], [[2.0], [2.0]]]
    assert [tuple(t.shape) for t in nt.transpose(1, 2).unbind()] == [(2, 1), (1, 2)]
    assert nt.to_padded_tensor(0.0).tolist() == [[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
    with pytest.raises(RuntimeError, match="irregular"):
        nt.size(1)


def test_gradients_flow_to_what_it_was_made_of():
    x, y = cresset.ones(2, requires_grad=True), cresset.ones(3, requires_grad=True)
    (cresset.nested.as_nested_tensor([x, y], layout=cresset.jagged) * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad.tolist() == [3.0, 3.0, 3.0]
    values = cresset.arange(4.0, requires_grad=True)
    nt = cresset.nested.nested_tensor_from_jagged(values, cresset.tensor([0, 1, 4]))
    (nt * nt).sum().backward()
    assert values.grad.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_parts_of_rows_and_masks():
    x = cresset.arange(6.0).reshape(2, 3)
    assert lists(
        cresset.nested.narrow(x, 1, cresset.tensor([0, 1]), cresset.tensor([1, 2]), layout=cresset.jagged)
    ) == [[0.0], [4.0, 5.0]]
    assert lists(cresset.nested.masked_select(x, x > 1)) == [[2.0], [3.0, 4.0, 5.0]]
    gaps = cresset.nested.nested_tensor_from_jagged(
        cresset.arange(6.0), cresset.tensor([0, 3, 6]), lengths=cresset.tensor([1, 2])
    )
    assert lists(gaps) == [[0.0], [3.0, 4.0]] and lists(gaps + 1) == [[1.0], [4.0, 5.0]] and gaps.sum().item() == 7.0


def test_offsets_that_go_beyond_the_values_are_refused():
    with pytest.raises(RuntimeError, match="offsets"):
        cresset.nested.nested_tensor_from_jagged(cresset.ones(3), cresset.tensor([0, 2, 5]))


def test_each_sequence_attends_to_itself_alone():
    parts = [cresset.randn(n, 2, 4) for n in (3, 5)]
    q = cresset.nested.nested_tensor(parts, layout=cresset.jagged).transpose(1, 2)
    for causal in (False, True):
        for got, part in zip(F.scaled_dot_product_attention(q, q, q, is_causal=causal).unbind(), parts, strict=True):
            alone = part.transpose(0, 1).unsqueeze(0)
            assert cresset.allclose(
                got, F.scaled_dot_product_attention(alone, alone, alone, is_causal=causal)[0], atol=1e-6
            )


def test_what_has_no_rule_names_the_way_out():
    with pytest.raises(
        NotImplementedError, match=r"not implemented for nested tensors; call to_padded_tensor\(0.0\) first"
    ):
        batch().cumprod(1)
    with pytest.raises(RuntimeError, match="expected a nested tensor"):
        cresset.nested.to_padded_tensor(cresset.ones(2), 0.0)


def test_bounds_of_lengths_are_checked():
    values, offsets = cresset.arange(5.0), cresset.tensor([0, 2, 5])
    assert cresset.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=2, max_seqlen=3).numel() == 5
    for bounds in ({"min_seqlen": 3}, {"max_seqlen": 2}):
        with pytest.raises(RuntimeError, match="do not fit lengths from 2 to 3"):
            cresset.nested.nested_tensor_from_jagged(values, offsets, **bounds)


def test_a_nested_tensor_has_one_memory_format():
    x = cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(3)])
    assert x.is_contiguous(memory_format=cresset.contiguous_format)
    with pytest.raises(RuntimeError, match="no memory format"):
        x.is_contiguous(memory_format=cresset.channels_last)


def test_a_jagged_tensor_that_requires_a_gradient_leaves_the_given_values_alone():
    values = cresset.ones(4, 2)
    jagged = cresset.nested.nested_tensor_from_jagged(values, cresset.tensor([0, 1, 4])).requires_grad_()
    (jagged * 2).values().sum().backward()
    assert jagged.is_leaf and jagged.grad is not None and not values.requires_grad and values.grad is None


@pytest.mark.parametrize("layout", BOTH)
def test_extremes_say_what_and_where_along_a_dimension(layout):
    nt = cresset.nested.nested_tensor([[1, 5, 2], [7, 3]], layout=layout, dtype=cresset.int64)
    assert nt.max().item() == 7 and nt.min().item() == 1
    values, indices = nt.max(dim=1)
    assert values.tolist() == [5, 7] and indices.tolist() == [1, 0] and nt.min(1).values.tolist() == [1, 3]
    assert nt.argmax(dim=1).tolist() == [1, 0] and nt.argmin(1).tolist() == [0, 1]


@pytest.mark.parametrize("layout", BOTH)
def test_all_components_are_filled(layout):
    nt = cresset.nested.nested_tensor([A, B], layout=layout)
    assert nt.fill_(3.0) is nt and {x for row in nt.values().reshape(-1, 2).tolist() for x in row} == {3.0}
    assert not nt.zero_().values().any()


def test_the_parts_of_a_jagged_tensor_have_pytorchs_names():
    nt = cresset.nested.nested_tensor([A, B], layout=cresset.jagged)
    assert nt._values.tolist() == A + B and nt._values.data_ptr() == nt.values().data_ptr()
    assert nt._metadata_cache == {"min_seqlen": 2, "max_seqlen": 3} == (nt * 2)._metadata_cache
    assert nt._max_seqlen_tensor.shape == (3, 0) and nt._min_seqlen_tensor.shape == (2, 0)
    bare = cresset.nested.nested_tensor_from_jagged(nt.values(), nt.offsets())
    assert bare._metadata_cache == {} and bare._max_seqlen_tensor is None and bare._max_seqlen == 3
    assert bare._get_max_seqlen() == 3 and bare._get_min_seqlen() == 2 and bare._maybe_max_seqlen is None
    given = cresset.nested.nested_tensor_from_jagged(nt.values(), nt.offsets(), max_seqlen=8)
    assert given._metadata_cache == {"max_seqlen": 8} and given._max_seqlen == 8 and given._min_seqlen == 2


@pytest.mark.parametrize("layout", BOTH, ids=str)
def test_unbind_gives_a_tuple_as_method_and_as_function(layout):
    for parts in (batch(layout).unbind(), cresset.unbind(batch(layout))):
        assert isinstance(parts, tuple) and [part.tolist() for part in parts] == [A, B]
