"""Reductions over segments: values to count by hand, empty segments, gradients, bad input."""

import pytest

import cresset

DATA = cresset.tensor([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("reduce", "expected"), [("sum", [3, 7]), ("mean", [1.5, 3.5]), ("prod", [2, 12]), ("max", [2, 4]), ("min", [1, 3])]
)
def test_lengths_and_offsets_say_the_same(reduce, expected):
    assert cresset.segment_reduce(DATA, reduce, lengths=cresset.tensor([2, 2])).tolist() == expected
    assert cresset.segment_reduce(DATA, reduce, offsets=cresset.tensor([0, 2, 4])).tolist() == expected


def test_an_empty_segment_gives_the_initial_value():
    lengths = cresset.tensor([0, 4])
    assert cresset.segment_reduce(DATA, "sum", lengths=lengths, initial=7).tolist() == [7, 17]
    assert cresset.segment_reduce(DATA, "mean", lengths=lengths).isnan().tolist() == [True, False]
    assert cresset.segment_reduce(DATA, "max", lengths=lengths).tolist() == [float("-inf"), 4]


def test_each_row_has_its_own_segments():
    rows = cresset.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    reduced = cresset.segment_reduce(rows, "sum", lengths=cresset.tensor([[1, 2], [3, 0]]), axis=1)
    assert reduced.tolist() == [[1, 5], [15, 0]]


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_gradients(reduce):
    data = cresset.tensor([0.5, -1.5, 2.5, 4.0], dtype=cresset.float64, requires_grad=True)
    assert cresset.autograd.gradcheck(
        lambda x: cresset.segment_reduce(x, reduce, lengths=cresset.tensor([1, 3])), (data,)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Either lengths or offsets"),
        ({"lengths": cresset.tensor([1, 1])}, "sum to data.size"),
        ({"lengths": cresset.tensor([-1, 5])}, "negative value -1"),
        ({"lengths": cresset.tensor([[4]])}, "1 dimensions"),
        ({"lengths": cresset.tensor([4]), "indices": cresset.tensor([0])}, "indices"),
    ],
)
def test_bad_segments_are_named(arguments, said):
    with pytest.raises(RuntimeError, match=said):
        cresset.segment_reduce(DATA, "sum", **arguments)


def test_the_older_name_is_the_same_function():
    x, lengths = cresset.tensor([1.0, 2.0, 3.0]), cresset.tensor([1, 2])
    assert cresset._segment_reduce(x, "sum", lengths=lengths).tolist() == [1.0, 5.0]


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_the_gradient_of_a_nan_goes_to_the_nans(reduce):
    nan = float("nan")
    x = cresset.tensor([nan, 3.0, 4.0, 5.0, 5.0, nan, nan], requires_grad=True)
    y = cresset.segment_reduce(x, reduce, lengths=cresset.tensor([2, 3, 2]))
    assert y.isnan().tolist() == [True, False, True]
    y.sum().backward()
    between = [0.0, 0.5, 0.5] if reduce == "max" else [1.0, 0.0, 0.0]
    assert x.grad.tolist() == [1.0, 0.0, *between, 0.5, 0.5]


def test_the_gradient_of_a_product_with_a_nan_is_known_at_the_nan():
    x = cresset.tensor([float("nan"), 3.0, 4.0, 5.0], requires_grad=True)
    cresset.segment_reduce(x, "prod", lengths=cresset.tensor([2, 2]), initial=2).sum().backward()
    assert x.grad[0] == 6.0 and x.grad[1].isnan() and x.grad[2:].tolist() == [10.0, 8.0]
