"""Joining tensors and splitting them."""

import itertools

import pytest

import cresset


def test_stacks_raise_dimensions_as_numpy_does():
    a, b = cresset.tensor([1, 2]), cresset.tensor([3, 4])
    assert cresset.hstack([a, b]).shape == (4,)
    assert cresset.vstack([a, b]).shape == (2, 2)
    assert cresset.dstack([a, b]).shape == (1, 2, 2)
    assert cresset.column_stack([a, b]).tolist() == [[1, 3], [2, 4]]
    assert cresset.row_stack([a, b]).tolist() == [[1, 2], [3, 4]]


def test_sections_differ_by_at_most_one():
    assert [piece.numel() for piece in cresset.arange(8).tensor_split(3)] == [3, 3, 2]


def test_split_indices_may_lie_outside():
    pieces = cresset.arange(4).tensor_split((1, -1, 9))
    assert [piece.tolist() for piece in pieces] == [[0], [1, 2], [3], []]


def test_split_places_may_be_a_tensor_or_named():
    x = cresset.arange(4)
    for pieces in (x.tensor_split(cresset.tensor([1])), x.tensor_split(indices=[1]), x.hsplit([1])):
        assert [piece.tolist() for piece in pieces] == [[0], [1, 2, 3]]
    assert len(x.tensor_split(sections=2)) == len(x.tensor_split(cresset.tensor(2))) == 2


def test_meshgrid_in_both_orders():
    a, b = cresset.arange(2), cresset.arange(3)
    assert [grid.shape for grid in cresset.meshgrid(a, b, indexing="ij")] == [(2, 3), (2, 3)]
    assert [grid.shape for grid in cresset.meshgrid([a, b], indexing="xy")] == [(3, 2), (3, 2)]


@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("with_replacement", [False, True])
def test_combinations_are_those_of_itertools(r, with_replacement):
    expected = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(3), r)
    assert cresset.combinations(cresset.arange(3), r, with_replacement).tolist() == [list(row) for row in expected]


def test_cartesian_product_is_that_of_itertools():
    rows = cresset.cartesian_prod(cresset.arange(2), cresset.arange(3)).tolist()
    assert rows == [list(row) for row in itertools.product(range(2), range(3))]


def test_blocks_promote_to_a_common_dtype():
    result = cresset.block_diag(cresset.tensor([[1, 2]]), cresset.tensor(0.5))
    assert result.dtype == cresset.float32
    assert result.tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 0.5]]


def test_gradient_of_a_block_is_its_part():
    a = cresset.ones(1, 2, requires_grad=True)
    (cresset.block_diag(a, cresset.ones(1, 1)) * 3).sum().backward()
    assert a.grad.tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cresset.hstack([]), RuntimeError, "expects a non-empty TensorList"),
        (lambda x: cresset.hstack(x), TypeError, "must be tuple of Tensors"),
        (lambda x: x.tensor_split(0), RuntimeError, "number of sections must be larger than 0, got 0"),
        (lambda x: x.tensor_split(1.5), TypeError, "not float"),
        (lambda x: x.tensor_split(), TypeError, "got 0 of them"),
        (lambda x: x.hsplit(2), RuntimeError, "the size of the dimension 3 is not divisible by the split_size 2"),
        (lambda x: x[0].vsplit(1), RuntimeError, "at least 2 dimension, but got a tensor with 1 dimensions"),
        (lambda x: cresset.meshgrid(x), RuntimeError, "Expected 0D or 1D tensor"),
        (lambda x: cresset.meshgrid(x[0], x[0].long()), RuntimeError, "same dtype"),
        (lambda x: cresset.meshgrid(x[0], indexing="yx"), RuntimeError, 'one of "xy" or "ij", but received: yx'),
        (lambda x: cresset.combinations(x), RuntimeError, "Expect a 1D vector"),
        (lambda x: cresset.cartesian_prod(x), RuntimeError, "Expect a 1D vector"),
        (lambda x: cresset.block_diag(x.reshape(1, 2, 3)), RuntimeError, "Input 0 has 3 dimensions"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(2, 3))


def test_cat_joins_along_any_dimension_and_promotes():
    x, y = cresset.ones(2, 2), cresset.zeros(2, 1, dtype=cresset.int64)
    assert cresset.cat([x, y], 1).tolist() == [[1, 1, 0], [1, 1, 0]]
    assert cresset.cat([x, y], -1).dtype == cresset.float32
    assert cresset.cat([x, cresset.empty(0)]).shape == (2, 2)  # an empty vector goes with everything
    assert cresset.cat([x.t()[:1], x]).shape == (3, 2)
    assert cresset.concat([x, x]).equal(cresset.concatenate([x, x]))


def test_cat_and_stack_of_every_layout_and_width():
    x = cresset.arange(24).reshape(2, 3, 4)
    for dtype in (cresset.uint8, cresset.float16, cresset.float32, cresset.float64, cresset.complex128):
        for piece in (x.to(dtype), x.to(dtype).transpose(0, 2).contiguous().transpose(0, 2)):
            for dim in range(3):
                joined = cresset.cat([piece, piece], dim)
                assert joined.narrow(dim, 0, x.size(dim)).equal(x.to(dtype))
                assert joined.narrow(dim, x.size(dim), x.size(dim)).equal(x.to(dtype))
            for dim in range(4):
                stacked = cresset.stack([piece, piece + 1], dim)
                assert stacked.select(dim, 0).equal(x.to(dtype))
                assert stacked.select(dim, 1).equal((x + 1).to(dtype))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cresset.cat([]), ValueError, "non-empty list of Tensors"),
        (lambda: cresset.cat([cresset.tensor(1)]), RuntimeError, "zero-dimensional tensor"),
        (lambda: cresset.cat([cresset.ones(2, 2), cresset.ones(2, 3)]), RuntimeError, "Expected size 2 but got size 3"),
        (lambda: cresset.cat([cresset.ones(2, 2), cresset.ones(2)]), RuntimeError, "same number of dimensions"),
        (lambda: cresset.stack([cresset.ones(2), cresset.ones(3)]), RuntimeError, "to be equal size"),
    ],
)
def test_what_does_not_join_is_an_error_that_says_so(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_cat_and_stack_give_each_its_part_of_the_gradient():
    x, y = cresset.ones(2, requires_grad=True), cresset.ones(3, requires_grad=True)
    (cresset.cat([x, y]) * cresset.arange(5)).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0, 1], [2, 3, 4])
    x.grad = None
    (cresset.stack([x, x * 2]) * cresset.tensor([[1.0], [10.0]])).sum().backward()
    assert x.grad.tolist() == [21, 21]


@pytest.mark.parametrize(
    "join", [cresset.cat, cresset.stack, cresset.hstack, cresset.vstack, cresset.dstack, cresset.column_stack]
)
def test_joined_numbers_that_out_cannot_hold_are_a_type_error(join):
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type"):
        join([cresset.ones(2)] * 2, out=cresset.zeros(4, dtype=cresset.int64))


def test_unsafe_pieces_are_no_views():
    x = cresset.ones(4, requires_grad=True)
    first, second = cresset.unsafe_chunk(x * 1, 2)
    assert first._base is None
    first.mul_(3)  # a piece of split refuses this
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]
    pieces = cresset.func.vmap(lambda row: cresset.unsafe_split(row, 1))(cresset.arange(4).view(2, 2))
    assert [piece.tolist() for piece in pieces] == [[[0], [2]], [[1], [3]]]


def test_unsafe_pieces_of_bools_lie_in_the_memory_of_the_whole():
    x = cresset.full((4,), 255, dtype=cresset.uint8).view(cresset.bool)
    first, _ = cresset.unsafe_chunk(x, 2)
    assert first.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("split", ["hsplit", "vsplit", "dsplit"])
def test_places_of_a_split_stand_one_by_one_or_in_one_list(split):
    x = cresset.arange(64.0).reshape(4, 4, 4)
    apart, listed = getattr(x, split)(1, 3), getattr(x, split)([1, 3])
    assert [piece.tolist() for piece in apart] == [piece.tolist() for piece in listed] and len(apart) == 3


def test_stack_lies_as_channels_last_images_do_and_an_out_of_another_size_becomes_contiguous():
    image = cresset.arange(16.0).reshape(2, 2, 2, 2).contiguous(memory_format=cresset.channels_last)
    out = cresset.empty(0)
    made, given = cresset.stack([image, image], 1), cresset.stack([image, image], 1, out=out)
    assert made.stride() == (16, 2, 1, 8, 4) and given is out and out.is_contiguous()
    assert made.equal(out)
