"""Reading and writing through indices; random indices are compared with PyTorch in tests/compat."""

import pytest

import cresset as torch


def grid():
    """0 to 11 in three rows of four."""
    return torch.arange(12).reshape(3, 4)


READ = [
    (lambda t: t[1], [4, 5, 6, 7]),
    (lambda t: t[-1, -1], 11),
    (lambda t: t[1:, ::2], [[4, 6], [8, 10]]),
    (lambda t: t[..., 0], [0, 4, 8]),
    (lambda t: t[:, None, 0], [[0], [4], [8]]),
    (lambda t: t[[0, 2]], [[0, 1, 2, 3], [8, 9, 10, 11]]),
    (lambda t: t[[0, 2], [1, 3]], [1, 11]),
    (lambda t: t[[[0, 2], [1, 3]]], [1, 11]),
    (lambda t: t[[0, slice(None)]], [0, 1, 2, 3]),
    (lambda t: t[torch.tensor([[0], [2]]), torch.tensor([0, 1])], [[0, 1], [8, 9]]),
    (lambda t: t[:, torch.tensor([3, 0])], [[3, 0], [7, 4], [11, 8]]),
    (lambda t: t[t > 9], [10, 11]),
    (lambda t: t[torch.tensor([True, False, True]), 1], [1, 9]),
    (lambda t: t[:, [True, False, False, True]], [[0, 3], [4, 7], [8, 11]]),
    (lambda t: t[True].shape, (1, 3, 4)),
    (lambda t: t[False].shape, (0, 3, 4)),
    (lambda t: t[torch.tensor(1), torch.tensor(2)], 6),
    (lambda t: t[range(2), 0], [0, 4]),
    (lambda t: t[5:].shape, (0, 4)),
    (lambda t: t[-100:100, 3], [3, 7, 11]),
    (lambda t: t[()].shape, (3, 4)),
    (lambda t: t[..., ...].shape, (3, 4)),
    (lambda t: t[None, ..., None].shape, (1, 3, 4, 1)),
    (lambda t: t[[]].shape, (0, 4)),
]


@pytest.mark.parametrize(("index", "expected"), READ, ids=range(len(READ)))
def test_reading(index, expected):
    got = index(grid())
    assert (got.tolist() if isinstance(got, torch.Tensor) else got) == expected


def test_dimensions_of_separated_indices_come_first():
    t = torch.arange(24).reshape(2, 3, 4)
    assert (
        t[[0, 1], :, [0, 1]].shape == (2, 3)
        and t[:, [0, 1], [0, 1]].shape == (2, 2)
        and t[[0], :, [0, 1, 2]].shape == (3, 3)
    )


def test_basic_indices_are_views_and_others_copies():
    t = grid()
    assert t[1:, 2].data_ptr() == t.data_ptr() + 6 * 8 and t[[0]].data_ptr() != t.data_ptr()


def test_writing():
    t = torch.zeros(3, 4)
    t[0] = 1
    t[1:, 0] = torch.tensor([2.0, 3.0])
    t[[1, 2], [1, 1]] = 4
    t[t == 0] = torch.tensor(9.0)
    t[..., 3:] = torch.full((1, 1, 1), 5.0)
    assert t.tolist() == [[1, 1, 1, 5], [2, 4, 9, 5], [3, 4, 9, 5]]


def test_the_last_of_several_writes_to_one_place_stays_and_accumulate_adds():
    t = torch.zeros(2)
    t[[0, 0]] = torch.tensor([1.0, 2.0])
    assert t.tolist() == [2, 0]
    t.index_put_((torch.tensor([1, 1]),), torch.tensor([1.0, 2.0]), accumulate=True)
    assert t.tolist() == [2, 3]


def test_numbers_are_converted_and_tensors_through_views_too():
    t = torch.zeros(3, dtype=torch.int32)
    t[0], t[1] = 1.7, torch.tensor(2.9)
    assert t.tolist() == [1, 2, 0]
    t[t == 0] = torch.tensor(7.9)
    assert t.tolist() == [1, 2, 7]
    with pytest.raises(RuntimeError, match="dtypes match"):
        t[[0]] = torch.tensor([2.9])
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(1, dtype=torch.uint8)[0] = 300


def test_gradients_of_reading():
    x = torch.arange(3.0, requires_grad=True)
    (x[[0, 0, 2]] * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [11, 0, 100]


def test_gradients_of_writing():
    x, v = torch.ones(3, requires_grad=True), torch.ones(1, 2, requires_grad=True)
    y = x * 2
    y[1:] = v * 3
    (y * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2, 0, 0] and v.grad.tolist() == [[30, 300]]


def test_a_leaf_that_requires_grad_cannot_be_written():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1


def test_true_alone_is_all_of_it():
    x = torch.zeros(2, 3)
    x[True] = torch.ones(3, dtype=torch.float16)  # a copy, which converts
    assert x.tolist() == [[1.0] * 3] * 2
    x[True] = x
    x[False] = 5
    assert x.tolist() == [[1.0] * 3] * 2


def test_one_number_through_a_mask_after_a_slice_is_converted():
    x = torch.zeros(2, 2, dtype=torch.float64)
    x[:, torch.tensor([True, False])] = torch.tensor(1.0)
    assert x.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[:, torch.tensor([0])] = torch.tensor(1.0)


def test_nothing_may_be_written_over_itself():
    x = torch.zeros(1, 0)
    x[x != x] = x
    assert x.shape == (1, 0)


def test_shared_elements_may_be_written_over_themselves():
    x = torch.ones(1).expand(3)
    x[:] = x
    assert x.copy_(x).tolist() == [1.0, 1.0, 1.0]


def test_what_is_read_through_indices_keeps_the_order_of_its_dimensions():
    x = torch.arange(24.0).view(2, 3, 4).transpose(1, 2)
    for index in (torch.tensor([1, 0]), torch.tensor([True, True])):
        y = x[index]
        assert y.shape == (2, 4, 3) and y.stride() == (12, 1, 4)
        assert y.tolist() == [x[i].tolist() for i in ([1, 0] if index.dtype == torch.int64 else [0, 1])]
    grid = x[torch.tensor([[0], [1]]), torch.tensor([0, 1, 3])]
    assert grid.tolist() == [[x[i, k].tolist() for k in (0, 1, 3)] for i in (0, 1)]


def test_an_index_beyond_its_dimension_is_told_by_the_dimension_of_the_whole():
    x = torch.zeros(2, 5, 10)
    for read, dim, size in (
        (lambda: x[0, 5], 1, 5),
        (lambda: x[4, 5], 0, 2),
        (lambda: x[0, 1, -15], 2, 10),
        (lambda: x[None, 1, :, 12], 2, 10),
        (lambda: x[..., torch.tensor(12)], 2, 10),
    ):
        with pytest.raises(IndexError, match=f"is out of bounds for dimension {dim} with size {size}"):
            read()


def test_unravel_index_wants_whole_numbers_for_a_shape():
    places = torch.tensor([1])
    with pytest.raises(TypeError, match="expected 'shape' to be int or sequence"):
        torch.unravel_index(places, torch.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="expected 'shape' sequence to only contain ints"):
        torch.unravel_index(places, (1, 2, 2.0))
