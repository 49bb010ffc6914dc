"""Shapes anew: what is a view, what broadcasts, and what is said when it cannot be."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck


def shares_memory(view, tensor):
    return view.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.flatten(1),
        lambda x: x.unflatten(1, (3, -1)),
        lambda x: x.ravel(),
        lambda x: x.movedim(0, -1),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.broadcast_to((5, 2, 12)),
        lambda x: x.view_as(cresset.zeros(24)),
        lambda x: x.expand_as(cresset.zeros(5, 2, 12)),
        lambda x: cresset.tensor_split(x, 2)[0],
        lambda x: cresset.atleast_3d(x),
    ],
)
def test_result_is_a_view(view):
    x = cresset.zeros(2, 12)
    assert shares_memory(view(x), x)


def test_flatten_of_one_dimension_gives_the_tensor_itself():
    x = cresset.zeros(2, 3)
    assert x.flatten(1) is x


def test_flatten_of_a_scalar_has_one_element():
    assert cresset.tensor(3).flatten().tolist() == [3]


def test_movedim_takes_several_dims_at_once():
    assert cresset.zeros(2, 3, 4, 5).movedim((0, 1), (-1, 0)).shape == (3, 4, 5, 2)


def test_four_quarter_turns_change_nothing():
    x = cresset.arange(6).reshape(2, 3)
    assert cresset.equal(x.rot90(1).rot90(1), x.rot90(2))
    assert cresset.equal(x.rot90(-1), x.rot90(3))
    assert cresset.equal(x.rot90(4), x)


def test_sizes_stand_one_by_one_or_in_one_tuple():
    x = cresset.tensor([1, 2])
    assert x.broadcast_to(2, 2).tolist() == x.broadcast_to((2, 2)).tolist() == [[1, 2], [1, 2]]
    for change in (x.broadcast_to, x.tile, x.sum_to_size):
        with pytest.raises(TypeError):
            change((2, 2), 2)


def test_tile_counts_from_the_last_dimension():
    x = cresset.tensor([[1, 2]])
    assert x.tile(2).tolist() == [[1, 2, 1, 2]]
    assert x.tile(2, 1).tolist() == [[1, 2], [1, 2]]
    assert x.tile((2, 1, 1)).shape == (2, 1, 2)


def test_repeat_interleave_by_number_by_tensor_and_as_index():
    x = cresset.tensor([[1, 2], [3, 4]])
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert x.repeat_interleave(2, dim=1).tolist() == [[1, 1, 2, 2], [3, 3, 4, 4]]
    assert x.repeat_interleave(cresset.tensor([0, 2]), dim=0).tolist() == [[3, 4], [3, 4]]
    assert cresset.repeat_interleave(cresset.tensor([2, 0, 1])).tolist() == [0, 0, 2]


def test_take_along_dim_broadcasts_and_counts_negative_indices_from_the_end():
    x = cresset.arange(6).reshape(2, 3)
    assert x.take_along_dim(cresset.tensor([[-1]]), dim=1).tolist() == [[2], [5]]
    assert x.take_along_dim(cresset.tensor([[4]]), dim=1).tolist() == [[1], [4]]  # modulo the size, as in PyTorch
    assert x.take_along_dim(cresset.tensor([4, 0])).tolist() == [4, 0]


def test_sum_to_size_is_the_reverse_of_broadcasting():
    x = cresset.ones(4, 2, 3)
    assert x.sum_to_size(2, 1).tolist() == [[12.0], [12.0]]
    assert x.sum_to_size(4, 2, 3) is x


def test_gradient_flows_to_repeated_elements():
    x = cresset.ones(2, requires_grad=True)
    x.repeat_interleave(cresset.tensor([3, 1])).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
        (
            lambda x: x.flatten(2),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2",
        ),
        (lambda x: x.unflatten(1, (2, 2)), RuntimeError, r"\[2, 2\] don't multiply up to the size of dim 1 \(3\)"),
        (lambda x: x.unflatten(1, ()), RuntimeError, "sizes must be non-empty"),
        (lambda x: x.movedim((0, 0), (0, 1)), RuntimeError, r"repeated dim in `source` \(\[0, 0\]\)"),
        (lambda x: x.movedim(0, (0, 1)), RuntimeError, "should contain the same number of dims"),
        (lambda x: x.movedim(cresset.tensor(1.0), 0), TypeError, "a dim must be int, not Tensor"),
        (lambda x: x.movedim(0, cresset.tensor([1])), TypeError, "a dim must be int, not Tensor"),
        (lambda x: x.moveaxis((True, 0), (0, 1)), TypeError, "a dim must be int, not bool"),
        (lambda x: x.rot90(1, (0, 0)), RuntimeError, "expected rotation dims to be different"),
        (lambda x: x[0].rot90(), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
        (lambda x: x[0].fliplr(), RuntimeError, "Input must be >= 2-d"),
        (lambda x: x[0].adjoint(), RuntimeError, "only supported on matrices"),
        (lambda x: x.repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
        (lambda x: x.repeat_interleave(cresset.tensor([1, 2, 3]), 0), RuntimeError, "same size as input along dim"),
        (lambda x: x.repeat_interleave(2.0), TypeError, "int or Tensor, not float"),
        (lambda x: x.take_along_dim(cresset.tensor([0]), 0), RuntimeError, "same number of dimensions"),
        (lambda x: x.take_along_dim(x, 0), RuntimeError, "dtype of indices should be Long"),
        (lambda x: x.sum_to_size(4), RuntimeError, r"size \[4\] is not expandable to size \[2, 3\]"),
        (lambda x: cresset.broadcast_shapes((2,), (3,)), RuntimeError, "broadcast a dimension of length 3 at -1"),
        (lambda x: cresset.broadcast_shapes((-1,)), ValueError, "negative length"),
        (lambda x: cresset.broadcast_tensors([x]), TypeError, "expected Tensor as element 0"),
        (lambda x: cresset.unravel_index(x, (2, 3)), TypeError, "integer dtype"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(2, 3))


def test_flip_reverses_the_dims_it_is_given():
    x = cresset.arange(6).reshape(2, 3)
    assert x.flip(0).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x.flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert x.t().flip(1).tolist() == [[3, 0], [4, 1], [5, 2]]
    assert x[:, ::2].flip((1,)).tolist() == [[2, 0], [5, 3]]


def test_roll_moves_what_leaves_at_the_end_to_the_front():
    x = cresset.arange(6).reshape(2, 3)
    assert x.roll(1, 1).tolist() == [[2, 0, 1], [5, 3, 4]]
    assert x.roll(-1).tolist() == [[1, 2, 3], [4, 5, 0]]
    assert x.roll((1, 5), (0, 1)).tolist() == [[4, 5, 3], [1, 2, 0]]
    with pytest.raises(RuntimeError, match="must align"):
        x.roll((1, 2), (0,))


def test_repeat_and_triangles():
    x = cresset.tensor([[1, 2], [3, 4]])
    assert x.repeat(1, 2).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert x.repeat(2, 1, 1).shape == (2, 2, 2)
    assert x.tril().tolist() == [[1, 0], [3, 4]]
    assert x.t().triu(1).tolist() == [[0, 3], [0, 0]]
    assert x.clone().tril_(-1).tolist() == [[0, 0], [3, 0]]
    assert x.tril(2**62).equal(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.flip(0, 1),
        lambda x: x.roll((1, 2), (0, 1)),
        lambda x: x.repeat(2, 1, 3),
        lambda x: x.tril(),
        lambda x: (x * 1).triu_(1),
    ],
)
def test_orders_differentiate_twice(function):
    x = cresset.randn(3, 4, dtype=cresset.float64, requires_grad=True)
    assert gradcheck(function, [x])
    assert gradgradcheck(function, [x])


def test_what_is_repeated_once_is_a_copy():
    x = cresset.ones(3)
    x.repeat_interleave(1).mul_(2)
    assert x.tolist() == [1.0, 1.0, 1.0]
