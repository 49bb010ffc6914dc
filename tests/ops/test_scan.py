"""Scans: cumulative sums, products, extremes, log-sum-exps."""

import math

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

NAN, INF = float("nan"), float("inf")


def test_cumulative_sums_and_products_along_any_dimension():
    x = cresset.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.cumsum(1).tolist() == [[1, 3, 6], [4, 9, 15]]
    assert x.cumsum(0).tolist() == [[1, 2, 3], [5, 7, 9]]
    assert x.t().cumprod(-1).tolist() == [[1, 4], [2, 10], [3, 18]]
    assert cresset.tensor(3.0).cumsum(0).item() == 3.0


def test_integers_and_bool_are_summed_in_int64_but_in_place_keeps_the_dtype():
    assert cresset.tensor([True, True]).cumsum(0).dtype == cresset.int64
    x = cresset.tensor([1, 2, 3], dtype=cresset.int32)
    assert x.cumsum_(0) is x and x.dtype == cresset.int32 and x.tolist() == [1, 3, 6]


def test_a_long_float_sum_is_kept_in_double():
    assert cresset.full((1_000_000,), 0.1).cumsum(0)[-1].item() == pytest.approx(100000.0, rel=1e-7)


def test_cumulative_extremes_take_the_last_of_equals_and_keep_nan():
    values, indices = cresset.tensor([1.0, 3.0, 3.0, NAN, 5.0]).cummax(0)
    assert values.tolist()[:3] == [1.0, 3.0, 3.0] and all(math.isnan(v) for v in values.tolist()[3:])
    assert indices.tolist() == [0, 1, 2, 3, 3]
    assert cresset.tensor([[3, 1], [2, 2]]).cummin(0).values.tolist() == [[3, 1], [2, 1]]


def test_logcumsumexp_does_not_overflow():
    x = cresset.tensor([1000.0, 1000.0, -INF])
    assert x.logcumsumexp(0).tolist() == pytest.approx([1000.0, 1000 + math.log(2), 1000 + math.log(2)])
    assert cresset.tensor([-INF, -INF]).logcumsumexp(0).tolist() == [-INF, -INF]


def test_errors():
    with pytest.raises(IndexError, match="Dimension out of range"):
        cresset.ones(3).cumsum(1)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        cresset.arange(3).logcumsumexp(0)
    with pytest.raises(RuntimeError, match="Bad in-place call"):
        cresset.ones(3).cumsum_(0, dtype=cresset.float64)


FUNCTIONS = {
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(1).values,
    "logcumsumexp": lambda x: x.logcumsumexp(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_finite_differences(name):
    x = (cresset.arange(12, dtype=cresset.float64).reshape(3, 4) * 7 % 11 / 5 - 1.05).requires_grad_()
    assert gradcheck(FUNCTIONS[name], (x,))
    assert gradgradcheck(FUNCTIONS[name], (x,))


def test_the_gradient_of_a_cumulative_product_survives_zeros():
    x = cresset.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=cresset.float64, requires_grad=True)
    # d/dx of x0 + x0 x1 + x0 x1 x2 + ...: only terms with one zero less count.
    (g,) = cresset.autograd.grad(x.cumprod(0).sum(), x)
    assert g.tolist() == [1.0, 8.0, 0.0, 0.0, 0.0]
    assert gradcheck(lambda t: t.cumprod(0), (x,)) and gradgradcheck(lambda t: t.cumprod(0), (x,))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_a_0d_tensor_has_dimension_0_alone(name):
    run = getattr(cresset, name)
    assert run(cresset.tensor(2.0), -1).values.item() == 2
    with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim -1 or 0 for scalar but got 100"):
        run(cresset.tensor(2.0), 100)
