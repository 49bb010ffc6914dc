"""What nested tensors are made of: symbolic sizes, strides, views of values, padded rows, files."""

import io

import pytest

import cresset
from cresset.fx.experimental.symbolic_shapes import is_nested_int
from cresset.nested._internal import nested_tensor as parts


def jagged(**kwargs):
    return cresset.nested.nested_tensor(
        [cresset.arange(6.0).reshape(2, 3), cresset.ones(4, 3)], layout=cresset.jagged, **kwargs
    )


def rows(nt):
    return [item.tolist() for item in nt.unbind()]


class TestSizes:
    def test_that_of_the_ragged_dimension_is_a_symbol(self):
        nt = jagged()
        assert isinstance(nt.size(1), cresset.SymInt) and is_nested_int(nt.size(1)) and not is_nested_int(nt.size(2))
        assert nt.size(1) == (nt * 2).size(1) == parts.get_tensor_symint(nt.offsets()) != jagged().size(1)
        assert 2 * nt.size(1) == nt.size(1) * 2 != nt.size(1)

    def test_strides_are_those_of_the_values_behind_the_batch(self):
        nt = jagged()
        assert nt.stride()[1:] == (3, 1) and nt.stride(0) == 3 * nt.size(1) and nt.stride(2) == 1
        with pytest.raises(RuntimeError, match="strided layout has no strides"):
            cresset.nested.nested_tensor([cresset.ones(2)]).stride()

    def test_components_have_shapes_and_strides(self):
        nt = cresset.nested.nested_tensor([cresset.ones(2, 3), cresset.ones(1, 3)])
        assert nt._nested_tensor_size().tolist() == [[2, 3], [1, 3]]
        assert nt._nested_tensor_strides().tolist() == [[3, 1], [3, 1]]
        assert nt._nested_tensor_storage_offsets().tolist() == [0, 6]
        assert nt.is_same_size(nt * 2) and not nt.is_same_size(nt.transpose(1, 2))

    def test_any_one_dimension_may_be_ragged(self):
        nt = cresset.nested.nested_tensor([cresset.ones(3, 2), cresset.ones(3, 4)], layout=cresset.jagged)
        assert nt._ragged_idx == 2 and nt.values().shape == (3, 6)


class TestViews:
    def test_a_nested_tensor_on_values_is_a_view_of_them(self):
        values = cresset.arange(5.0)
        nt = cresset.nested.nested_tensor_from_jagged(values, cresset.tensor([0, 2, 5]))
        assert nt._is_view() and nt._base is values
        assert nt.view(2, -1, 1)._base is values and not (nt * 2)._is_view()

    def test_narrow_tells_where_the_last_part_ends(self):
        starts, lengths = cresset.tensor([0, 1]), cresset.tensor([2, 1])
        nt = cresset.nested.narrow(cresset.arange(8).reshape(2, 4), 1, starts, lengths, layout=cresset.jagged)
        assert nt.offsets().tolist() == [0, 5, 6] and nt.lengths().tolist() == [2, 1]

    def test_narrow_copies_nothing(self):
        buffer = cresset.arange(10.0).reshape(2, 5).clone()
        nt = cresset.nested.narrow(buffer, 1, cresset.tensor([0, 1]), cresset.tensor([2, 3]), layout=cresset.jagged)
        assert nt._base is buffer and not nt.is_contiguous() and rows(nt) == [[0.0, 1.0], [6.0, 7.0, 8.0]]
        buffer[0, 0] = 9.0
        assert rows(nt)[0][0] == 9.0
        whole = cresset.nested.narrow(buffer, 1, cresset.tensor([1, 0]), cresset.tensor([4, 2]), layout=cresset.jagged)
        assert whole.is_contiguous() and rows(whole) == [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]]

    def test_a_view_of_the_same_shape_is_allowed_wherever_the_ragged_dimension_is(self):
        turned = jagged().transpose(1, 2)
        assert rows(turned.view(2, 3, turned.size(2))) == rows(turned)

    def test_a_batch_is_cut_into_groups_of_components(self):
        x = cresset.arange(6.0).requires_grad_()
        nt = cresset.nested.nested_tensor_from_jagged(x, cresset.tensor([0, 1, 3, 6]))
        first, second = nt.chunk(2)
        assert rows(first) == [[0.0], [1.0, 2.0]] and rows(second) == [[3.0, 4.0, 5.0]]
        second.values().sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]

    def test_to_gives_the_tensor_itself_where_nothing_is_to_be_done(self):
        nt = jagged()
        assert nt.to(nt) is nt and nt.to("cpu") is nt and nt.to(nt.dtype) is nt
        assert nt.to(nt, copy=True) is not nt and nt.to(cresset.float64).dtype == cresset.float64


class TestReductions:
    def test_over_the_batch_and_the_ragged_dimension_at_once(self):
        nt = jagged()
        assert nt.sum((0, 1)).tolist() == nt.values().sum(0).tolist()
        assert nt.sum((0, 1), keepdim=True).shape == (1, 1, 3)
        assert nt.sum((0, 1, 2), keepdim=True).shape == (1, 1, 1)

    def test_over_the_ragged_and_a_regular_one_is_refused(self):
        with pytest.raises(RuntimeError, match="along a ragged and non-batch dimension"):
            jagged().sum((1, 2))

    def test_layer_norm_of_whole_components(self):
        nt = jagged()
        found = cresset.nn.functional.layer_norm(nt, nt.shape[1:])
        for one, item in zip(found.unbind(), nt.unbind(), strict=True):
            assert cresset.allclose(one, cresset.nn.functional.layer_norm(item, item.shape))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda nt: nt.softmax(0), "across the batch dimension for NestedTensor"),
        (lambda nt: nt.transpose(1, 2).softmax(2), "ragged_idx > 1"),
        (lambda nt: nt.split(1, 1), r"split\(\): not supported for NestedTensor on ragged dim"),
        (lambda nt: nt.squeeze(1), "ragged dim"),
        (lambda nt: cresset.cat([nt, nt]), "not supported for NestedTensor on dim=0"),
        (lambda nt: cresset.stack([nt, nt]), "not supported for NestedTensor on dim=0"),
        (lambda nt: cresset.cat([nt, cresset.ones(2, 4, 3)], 2), "expected each tensor in given list to be nested"),
        (lambda nt: nt.copy_(nt.transpose(1, 2)), "expected compatible input and src shapes"),
        (lambda nt: nt.clone(memory_format=cresset.channels_last), "supports Preserve and Contiguous memory formats"),
        (lambda nt: nt * nt.transpose(1, 2), "cannot call binary pointwise function mul.Tensor"),
        (lambda nt: cresset.nn.functional.layer_norm(nt, (2, nt.size(1), 3)), "over the batch dimension"),
    ],
)
def test_refusals_say_why(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(jagged())


def test_orders_of_dimensions_are_checked():
    nt = jagged()
    for order, words in (((0, 2), "does not match the length"), ((0, 1, 1), "duplicate"), ((1, 0, 2), "batch")):
        with pytest.raises(ValueError, match=words):
            nt.permute(*order)


class TestPaddedRows:
    def test_from_a_mask(self):
        mask = cresset.tensor([[True, False], [True, True]])
        nt = cresset._nested_tensor_from_mask(cresset.arange(4.0).reshape(2, 2, 1), mask)
        assert rows(nt) == [[[0.0]], [[2.0], [3.0]]]
        with pytest.raises(RuntimeError, match="left-aligned"):
            cresset._nested_tensor_from_mask(cresset.ones(2, 2, 1), ~mask)

    def test_from_shapes_with_gradients(self):
        padded = cresset.ones(2, 3, dtype=cresset.float64, requires_grad=True)
        shapes = cresset.tensor([[1], [3]])
        assert cresset.autograd.gradcheck(
            lambda x: cresset._nested_from_padded(x, shapes).to_padded_tensor(0.0) ** 2, (padded,)
        )

    def test_packed_values_and_back(self):
        offsets = cresset.tensor([0, 1, 3])
        values = cresset.tensor([1.0, 2.0, 3.0], dtype=cresset.float64, requires_grad=True)
        padded = cresset._jagged_to_padded_dense_forward(values, [offsets], [2], -1.0)
        assert padded.tolist() == [[1.0, -1.0], [2.0, 3.0]]
        assert cresset._padded_dense_to_jagged_forward(padded, [offsets]).tolist() == values.tolist()
        assert cresset.autograd.gradcheck(
            lambda x: cresset._jagged_to_padded_dense_forward(x, [offsets], [2]) ** 2, (values,)
        )
        with pytest.raises(RuntimeError, match="expected 1D offsets"):
            cresset._padded_dense_to_jagged_forward(padded, [offsets.unsqueeze(0)])
        with pytest.raises(RuntimeError, match="expected padded dim >= 2"):
            cresset._padded_dense_to_jagged_forward(padded.flatten(), [offsets])
        with pytest.raises(RuntimeError, match="found batch item of length 2 when max length .* is 1"):
            cresset._padded_dense_to_jagged_forward(padded[:, :1], [offsets])
        nt = parts.nested_from_padded(padded, offsets, min_seqlen=1)
        assert rows(nt) == [[1.0], [2.0, 3.0]] and nt._metadata_cache == {"min_seqlen": 1}

    def test_the_ragged_dimension_of_packed_values_comes_after_the_batch(self):
        with pytest.raises(ValueError, match="Expected jagged_dim >=1, but got 0"):
            cresset.nested.nested_tensor_from_jagged(cresset.ones(3), cresset.tensor([0, 1, 3]), jagged_dim=0)

    def test_components_without_elements_cannot_be_filled_up(self):
        with pytest.raises(RuntimeError, match="at least one constituent tensor"):
            cresset.nested.nested_tensor([cresset.ones(0), cresset.ones(0)]).to_padded_tensor(0.0)


def saved(nt, **kwargs):
    file = io.BytesIO()
    cresset.save(nt, file)
    file.seek(0)
    return cresset.load(file, **kwargs)


class TestFiles:
    @pytest.mark.parametrize("weights_only", [True, False])
    @pytest.mark.parametrize(
        "make",
        [
            jagged,
            lambda: jagged().transpose(1, 2),
            lambda: cresset.nested.nested_tensor([cresset.ones(2, 3), cresset.zeros(1, 5)]),
            lambda: cresset.nested.nested_tensor_from_jagged(
                cresset.arange(6.0), cresset.tensor([0, 3, 6]), cresset.tensor([2, 1])
            ),
        ],
    )
    def test_nested_tensors_are_saved_and_loaded(self, make, weights_only):
        nt = make()
        again = saved(nt, weights_only=weights_only)
        assert rows(again) == rows(nt) and again.layout == nt.layout and again._metadata_cache == nt._metadata_cache

    @pytest.mark.parametrize("offsets", [[0, 9], [-1, 2], [3, 1]])
    def test_offsets_of_a_file_are_checked(self, offsets):
        nt = parts.nested_view_from_values_offsets(cresset.arange(4.0), cresset.tensor(offsets))
        with pytest.raises(Exception, match="do not fit"):
            saved(nt)


def test_elements_are_replaced_in_place_beside_autograd():
    nt = jagged(requires_grad=True)
    nt.apply_(lambda x: x + 1)
    assert nt.values().tolist()[0] == [1.0, 2.0, 3.0] and nt.is_leaf


def test_lengths_beyond_the_values_are_found_when_they_are_read():
    nt = parts.NestedTensor(cresset.ones(3), cresset.tensor([0, 2, 3]), lengths=cresset.tensor([2, 4]))
    with pytest.raises(RuntimeError, match="offsets and lengths do not match"):
        nt.unbind()


def test_what_is_no_list_is_no_list_of_components():
    with pytest.raises(TypeError, match="list"):
        cresset.nested.nested_tensor(cresset.ones(3))


def test_dropout_of_everything():
    nt = cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(1)])
    assert rows(cresset.nn.functional.dropout(nt, 1.0)) == [[0.0, 0.0], [0.0]]


@pytest.mark.parametrize("shapes", [[(2, 3), (3, 3), (1, 3)], [(2, 3), (3, 2), (1, 1)]], ids=["ragged", "any"])
def test_some_of_the_components_are_a_view(shapes):
    parts = [cresset.full(shape, float(place)) for place, shape in enumerate(shapes)]
    whole = cresset.nested.nested_tensor(parts)
    some = whole.narrow(0, 1, 2)
    assert some._base is whole and [part.tolist() for part in some.unbind()] == [part.tolist() for part in parts[1:]]
    some[0] = 9.0
    assert whole[1].eq(9).all() and whole[0].eq(0).all() and whole[2].eq(2).all()
    assert whole.narrow(0, 3, 0).size(0) == 0
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        whole.narrow(0, 2, 2)


def test_a_component_can_be_assigned_to():
    values = cresset.zeros(5, 2, requires_grad=True)
    nt = cresset.nested.nested_tensor_from_jagged(values * 1, cresset.tensor([0, 2, 5]))
    nt[1, 0] = cresset.tensor([1.0, 2.0])
    nt[-2] = 3.0
    assert [part.tolist() for part in nt.unbind()] == [[[3.0, 3.0]] * 2, [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]]
    nt.values().sum().backward()
    assert values.grad.tolist() == [[0.0, 0.0]] * 3 + [[1.0, 1.0]] * 2
    with pytest.raises(IndexError, match="out of bounds"):
        nt[2] = 0
    with pytest.raises(TypeError, match="Cannot assign to a nested tensor"):
        nt[:, 0] = 0


def test_sizes_are_compared_by_the_operator_too():
    nt = cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(3)])
    assert cresset.ops.aten.is_same_size(nt, nt + 1)
    assert not cresset.ops.aten.is_same_size(nt, cresset.nested.nested_tensor([cresset.ones(3), cresset.ones(3)]))


@pytest.mark.parametrize("layout", [cresset.strided, cresset.jagged])
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_takes_sequences_without_padding(layout, norm_first):
    layer = cresset.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    sequences = [cresset.randn(2, 8), cresset.randn(5, 8)]
    found = layer(cresset.nested.nested_tensor(sequences, layout=layout))
    for sequence, part in zip(sequences, found.unbind(), strict=True):
        assert cresset.allclose(part, layer(sequence.unsqueeze(0))[0], atol=1e-6)


def test_attention_says_what_it_cannot_do_with_nested_tensors():
    nt = cresset.nested.nested_tensor([cresset.randn(2, 8), cresset.randn(3, 8)])
    words = "MultiheadAttention does not support NestedTensor outside of its fast path"
    for attention, settings, why in (
        (cresset.nn.MultiheadAttention(8, 2), {"need_weights": False}, "batch_first"),
        (cresset.nn.MultiheadAttention(8, 2, batch_first=True), {}, "need_weights"),
        (cresset.nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True), {"need_weights": False}, "a key"),
    ):
        with pytest.raises(AssertionError, match=f"{words}.*{why}"):
            attention(nt, nt, nt, **settings)


def test_batches_of_matrices_that_do_not_fit_are_named():
    def batch(*shapes):
        return cresset.nested.nested_tensor([cresset.ones(shape) for shape in shapes])

    vectors, two, three = batch(2, 3), batch((2, 4), (3, 4)), batch((4, 6), (4, 5), (4, 7))
    for first, second, words in (
        (vectors, two, "batch1 must be a 3D tensor"),
        (two, vectors, "batch2 must be a 3D tensor"),
        (two, three, "batch2 tensor to be: 2 but got: 3"),
        (two, two, r"0-th nested matrices in batch cannot be multiplied \(2x4 and 2x4\)"),
    ):
        with pytest.raises(RuntimeError, match=words):
            first.bmm(second)
    assert [part.shape for part in two.bmm(cresset.ones(2, 4, 5)).unbind()] == [(2, 5), (3, 5)]


def test_jagged_tensors_have_the_same_size_by_the_same_offsets():
    nt = cresset.nested.nested_tensor([cresset.ones(2, 3), cresset.ones(1, 3)], layout=cresset.jagged)
    same = cresset.nested.nested_tensor_from_jagged(nt.values(), nt.offsets())
    alike = cresset.nested.nested_tensor_from_jagged(nt.values(), nt.offsets().clone())
    assert same.shape == nt.shape and nt.is_same_size(same)
    assert alike.shape != nt.shape and not nt.is_same_size(alike)
