"""Sorting and selecting."""

import math

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

NAN = float("nan")
ORDERED = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def test_sort_gives_values_and_where_they_were():
    values, indices = cresset.tensor([[3, 1, 2], [9, 8, 7]]).sort()
    assert values.tolist() == [[1, 2, 3], [7, 8, 9]]
    assert indices.tolist() == [[1, 2, 0], [2, 1, 0]]
    assert cresset.tensor([[3, 1], [2, 4]]).sort(0, descending=True).values.tolist() == [[3, 4], [2, 1]]


def test_nan_is_the_largest():
    x = cresset.tensor([1.0, NAN, -math.inf, math.inf])
    assert x.sort().indices.tolist() == [2, 0, 3, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert x.topk(2).indices.tolist() == [1, 3]


@pytest.mark.parametrize("length", [5, 150, 1000, 20_000])
@pytest.mark.parametrize("name", ORDERED)
def test_every_dtype_and_length_sorts_stably(name, length):
    dtype = getattr(cresset, name)
    x = (cresset.arange(length) * 7919 % 101).to(dtype)
    if dtype.is_signed:
        x = x - 50
    values, indices = x.sort(stable=True)
    expected = sorted(range(length), key=lambda i: x[i].item())
    assert indices.tolist() == expected
    assert values.equal(x[indices])
    backwards = x.sort(stable=True, descending=True)
    assert backwards.indices.tolist() == sorted(range(length), key=lambda i: -x[i].item())


def test_sorting_keeps_zeros_of_either_sign_and_their_order():
    x = cresset.tensor([0.0, -0.0, 1.0, -0.0, -1.0])
    values, indices = x.sort(stable=True)
    assert indices.tolist() == [4, 0, 1, 3, 2]
    assert [math.copysign(1, v) for v in values.tolist()] == [-1, 1, -1, -1, 1]


def test_sort_of_a_view_keeps_its_layout():
    x = cresset.tensor([[3, 1], [2, 4]]).t()
    assert x.sort(0).values.tolist() == [[1, 2], [3, 4]]
    assert x.sort(0).values.stride() == x.stride()


@pytest.mark.parametrize("length", [10, 1000])
@pytest.mark.parametrize("k", [1, 5])
def test_topk_is_the_beginning_of_sort(length, k):
    x = (cresset.arange(length) * 7919 % length).float()
    for largest in (True, False):
        values, indices = x.topk(k, largest=largest)
        assert values.tolist() == x.sort(descending=largest).values[:k].tolist()
        assert values.equal(x[indices])


@pytest.mark.parametrize("length", [1, 2, 7, 5001])
def test_kthvalue_and_median_stand_where_sort_puts_them(length):
    x = (cresset.arange(length) * 7919 % length).double()
    ordered = x.sort().values
    middle = (length - 1) // 2
    assert x.median().item() == x.median(0).values.item() == ordered[middle].item()
    for k in (1, middle + 1, length):
        values, indices = x.kthvalue(k)
        assert values.item() == ordered[k - 1].item() == x[indices].item()


def test_median_with_nan():
    x = cresset.tensor([[1.0, NAN, 3.0], [NAN, NAN, NAN]])
    assert math.isnan(x.median().item())
    assert x.nanmedian().item() == 1.0
    values, indices = x.median(1)
    assert indices.tolist() == [1, 0]
    values, indices = x.nanmedian(1)
    assert values[0].item() == 1.0
    assert math.isnan(values[1].item())


def test_mode_is_the_smallest_of_the_most_frequent():
    values, indices = cresset.tensor([[2, 1, 1, 2, 0], [5, 5, 5, 1, 1]]).mode()
    assert values.tolist() == [1, 5]
    assert indices.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.topk(5), RuntimeError, "selected index k out of range"),
        (lambda x: x.bool().topk(1), RuntimeError, "does not support bool"),
        (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range"),
        (lambda x: x[:0].median(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda x: x.bool().median(), NotImplementedError, "not implemented for 'bool'"),
        (lambda x: x.to(cresset.complex64).sort(), RuntimeError, "does not support complex"),
        (lambda x: (x - 1).long().bincount(), RuntimeError, "non-negative integral"),
        (lambda x: x.bincount(), NotImplementedError, "not implemented for 'float32'"),
        (lambda x: x.histc(0), RuntimeError, "bins must be > 0"),
        (lambda x: cresset.searchsorted(x, x, side="up"), RuntimeError, "side can only be 'left' or 'right'"),
        (lambda x: cresset.bucketize(x, x.reshape(1, 3)), RuntimeError, "must be 1 dimension"),
    ],
)
def test_what_cannot_be_ordered_is_an_error_that_says_so(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.tensor([0.0, 1.0, 2.0]))


SELECTIONS = {
    "sort": lambda x: x.sort(0, descending=True).values,
    "topk": lambda x: x.topk(2).values,
    "kthvalue": lambda x: x.kthvalue(2, 0).values,
    "median": lambda x: x.median(),
    "median dim": lambda x: x.median(1, keepdim=True).values,
    "nanmedian dim": lambda x: x.nanmedian(0).values,
    "mode": lambda x: x.mode().values,
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_differentiate_twice(name):
    x = cresset.randn(3, 4, dtype=cresset.float64, requires_grad=True)
    assert gradcheck(SELECTIONS[name], [x])
    assert gradgradcheck(SELECTIONS[name], [x])


def test_equal_medians_share_the_gradient():
    x = cresset.tensor([1.0, 2.0, 2.0, 3.0], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5, 0.0]


def test_nonzero_of_fixed_size_is_cut_or_filled():
    x = cresset.tensor([0, 1, 1])
    assert x.nonzero_static(size=1).tolist() == [[1]]
    assert x.nonzero_static(size=3, fill_value=9).tolist() == [[1], [2], [9]]
