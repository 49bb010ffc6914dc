"""Comparing tensors, distinct elements, places in a sorted sequence."""

import bisect
import random

import pytest

import cresset

INF, NAN = float("inf"), float("nan")


def test_close_means_within_the_bounds_of_the_second():
    a, b = cresset.tensor([1.0, 100.0, INF, NAN]), cresset.tensor([1.1, 110.0, INF, NAN])
    assert a.isclose(b, rtol=0.0, atol=0.2).tolist() == [True, False, True, False]
    assert a.isclose(b, rtol=0.1, atol=0.0).tolist() == [True, True, True, False]
    assert a.isclose(b, rtol=0.1, equal_nan=True).all()
    assert not a.allclose(b) and a.allclose(a, equal_nan=True)


def test_equal_needs_shape_and_elements():
    x = cresset.tensor([1, 2])
    assert x.equal(cresset.tensor([1.0, 2.0])) is True
    assert cresset.tensor(1.0).equal(cresset.tensor(1.0)) and not cresset.tensor(1.0).equal(cresset.tensor(2.0))
    assert x.equal(cresset.tensor([[1, 2]])) is False
    assert cresset.tensor([NAN]).equal(cresset.tensor([NAN])) is False


@pytest.mark.parametrize("count", [3, 40])
def test_isin_of_few_and_of_many(count):
    tests = cresset.arange(0, 2 * count, 2)
    x = cresset.tensor([[-1, 0, 1], [2, 4, 2 * count]])
    assert cresset.isin(x, tests).tolist() == [[False, True, False], [True, True, False]]
    assert cresset.equal(cresset.isin(x, tests, invert=True), ~cresset.isin(x, tests))
    assert cresset.isin(2, tests).item() is True


def test_unique_gives_all_three():
    x = cresset.tensor([[3, 1], [1, 2]])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3] and counts.tolist() == [2, 1, 1]
    assert cresset.equal(values[inverse], x)


def test_every_nan_is_distinct():
    assert cresset.tensor([NAN, 1.0, NAN]).unique(return_counts=True)[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("dim", [0, 1])
def test_unique_slices_are_sorted_like_words(dim):
    rng = random.Random(0)
    rows = [[rng.randint(0, 2) for _ in range(3)] for _ in range(40)]
    x = cresset.tensor(rows) if dim == 0 else cresset.tensor(rows).t()
    values, inverse, counts = x.unique(dim=dim, return_inverse=True, return_counts=True)
    expected = sorted({tuple(row) for row in rows})
    assert (values if dim == 0 else values.t()).tolist() == [list(row) for row in expected]
    assert inverse.tolist() == [expected.index(tuple(row)) for row in rows]
    assert counts.tolist() == [rows.count(list(row)) for row in expected]


def test_unique_consecutive_keeps_the_order():
    values, counts = cresset.tensor([2, 2, 1, 2]).unique_consecutive(return_counts=True)
    assert values.tolist() == [2, 1, 2] and counts.tolist() == [2, 1, 1]


def test_distinct_elements_of_nothing():
    empty = cresset.zeros(0, 3)
    assert empty.unique().shape == (0,) and empty.unique(dim=0).shape == (0, 3)
    assert [t.numel() for t in empty.unique_consecutive(True, True)] == [0, 0, 0]


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 100])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_is_bisect(length, right):
    rng = random.Random(length)
    sequence = sorted(rng.randint(0, 20) for _ in range(length))
    elements = list(range(-1, 22))
    find = bisect.bisect_right if right else bisect.bisect_left
    expected = [find(sequence, element) for element in elements]
    sequence = cresset.tensor(sequence, dtype=cresset.int64)
    assert cresset.searchsorted(sequence, cresset.tensor(elements), right=right).tolist() == expected
    assert cresset.bucketize(cresset.tensor(elements), sequence, right=right).tolist() == expected


def test_searchsorted_by_rows_with_a_sorter_and_nan_last():
    rows = cresset.tensor([[3.0, 1.0, 2.0], [30.0, 20.0, 10.0]])
    places = cresset.searchsorted(rows, cresset.tensor([[2.5, NAN], [5.0, 20.0]]), sorter=rows.argsort(1))
    assert places.tolist() == [[2, 3], [0, 1]]
    assert cresset.searchsorted(rows[0].msort(), 2.5, out_int32=True).dtype == cresset.int32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.isclose(x.long()), RuntimeError, "did not match"),
        (lambda x: x.isclose(x, rtol=-1), RuntimeError, "rtol must be greater than or equal to zero, but got -1"),
        (lambda x: x.isclose(1), TypeError, "argument 'other' must be Tensor, not int"),
        (lambda x: x.equal(1), TypeError, "argument 'other' must be Tensor, not int"),
        (lambda x: cresset.isin(x.bool(), x), RuntimeError, "Unsupported input type"),
        (lambda x: cresset.isin(1, 2), TypeError, "must be a Tensor"),
        (lambda x: x[:, :0].unique(dim=0), RuntimeError, "There are 0 sized dimensions"),
        (lambda x: x[0, 0].unique(dim=0), IndexError, "tensor has no dimensions"),
        (lambda x: cresset.bucketize(x, x), RuntimeError, "boundaries tensor must be 1 dimension"),
        (lambda x: cresset.searchsorted(x, 2), RuntimeError, "scalar only when boundaries tensor dimension is 1"),
        (lambda x: cresset.searchsorted(x, x[0]), RuntimeError, "the first N-1 dimensions"),
        (lambda x: cresset.searchsorted(x, x, side="middle"), RuntimeError, "'left' or 'right' but got middle"),
        (lambda x: cresset.searchsorted(x, x, side="left", right=True), RuntimeError, "opposites"),
        (lambda x: cresset.searchsorted(x, x, sorter=x.long() + 3), RuntimeError, "sorter index out of range"),
        (lambda x: x.nonzero_static(size=-1), RuntimeError, "non-negative"),
    ],
)
def test_error_says_what_is_wrong(call, error, message, refused):
    with refused(error, message):
        call(cresset.zeros(2, 3))


def test_bounds_may_be_integers_of_any_size():
    close = cresset.isclose(cresset.tensor([1.0, float("nan")]), cresset.tensor([9.0, 1.0]), 0, 1 << 70)
    assert close.tolist() == [True, False]
    assert cresset.allclose(cresset.ones(2), cresset.zeros(2), 0, 1 << 70)


def test_unique_with_inverse_and_counts():
    values, inverse, counts = cresset.tensor([[3, 1], [3, 2]]).unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[2, 0], [2, 1]]
    assert counts.tolist() == [1, 1, 2]
    rows, inverse = cresset.tensor([[1, 2], [0, 5], [1, 2]]).unique(dim=0, return_inverse=True)
    assert rows.tolist() == [[0, 5], [1, 2]]
    assert inverse.tolist() == [1, 0, 1]


def test_unique_consecutive_keeps_what_comes_back():
    values, inverse, counts = cresset.tensor([1, 1, 2, 1]).unique_consecutive(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 2], [2, 1, 1])


def test_searchsorted_on_either_side_and_by_rows():
    sequence = cresset.tensor([1, 3, 3, 5])
    x = cresset.tensor([0, 3, 4, 6])
    assert cresset.searchsorted(sequence, x).tolist() == [0, 1, 3, 4]
    assert cresset.searchsorted(sequence, x, right=True).tolist() == [0, 3, 3, 4]
    assert cresset.searchsorted(sequence, 2.5).item() == 1
    assert cresset.searchsorted(sequence, NAN).item() == 4
    rows = cresset.tensor([[1, 2], [10, 20]])
    assert cresset.searchsorted(rows, cresset.tensor([[2], [15]])).tolist() == [[1], [1]]
    assert cresset.searchsorted(sequence, x, out_int32=True).dtype == cresset.int32
    shuffled, sorter = cresset.tensor([5, 1, 3]), cresset.tensor([1, 2, 0])
    assert cresset.searchsorted(shuffled, cresset.tensor([4]), sorter=sorter).tolist() == [2]
    assert cresset.bucketize(cresset.tensor([3, 4]), cresset.tensor([3, 4]), right=True).tolist() == [1, 2]


@pytest.mark.parametrize("bound", [cresset.tensor([1.0]), cresset.tensor(1.0, requires_grad=True)], ids=["1-d", "grad"])
def test_a_bound_is_a_number_or_a_0d_tensor_without_a_gradient(bound):
    x = cresset.ones(2)
    assert cresset.isclose(x, x + 0.5, cresset.tensor(0), cresset.tensor(1.0)).all()
    with pytest.raises(TypeError, match=r"argument 'atol' \(position 4\) must be float, not Tensor"):
        cresset.isclose(x, x, 1.0, bound)


@pytest.mark.parametrize("compare", [cresset.isclose, cresset.allclose])
@pytest.mark.parametrize("given", ["mean", 1, None])
def test_whether_nan_equals_nan_is_a_bool(compare, given):
    with pytest.raises(TypeError, match="argument 'equal_nan' must be bool, not"):
        compare(cresset.ones(1), cresset.ones(1), equal_nan=given)
