"""How numbers are stored: frexp."""

import math

import pytest

import cresset

pytestmark = pytest.mark.kernels
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_frexp_gives_mantissas_and_exponents_of_every_float(dtype):
    dtype = getattr(cresset, dtype)
    tiny, largest = cresset.finfo(dtype).smallest_normal, cresset.finfo(dtype).max
    numbers = [0.0, -0.0, 1.0, -6.0, 0.1, tiny, -tiny / 4, largest]
    x = cresset.tensor(numbers, dtype=dtype)
    mantissa, exponent = cresset.frexp(x)
    assert mantissa.dtype == dtype and exponent.dtype == cresset.int32
    expected = [math.frexp(number) for number in x.double().tolist()]
    assert list(zip(mantissa.double().tolist(), exponent.tolist(), strict=True)) == expected
    assert math.copysign(1, mantissa[1].item()) == -1


def test_frexp_of_what_is_not_finite_is_the_number_itself_and_zero():
    mantissa, exponent = cresset.frexp(cresset.tensor([INF, -INF, NAN]))
    assert mantissa.tolist()[:2] == [INF, -INF] and math.isnan(mantissa[2].item()) and exponent.tolist() == [0, 0, 0]


@pytest.mark.parametrize("count", [0, 1, 5, 1027])
def test_frexp_of_any_number_of_elements_wherever_they_lie(count):
    for x in (cresset.arange(count + 1.0)[1:], cresset.arange(2.0 * count).reshape(2, count).t()):
        mantissa, exponent = cresset.frexp(x)
        assert cresset.equal(cresset.ldexp(mantissa, exponent), x)
        assert count < 2 or mantissa.stride() == exponent.stride() == x.stride()
    assert cresset.frexp(cresset.tensor(3.0)).exponent.item() == 2


def test_the_gradient_of_frexp_is_the_power_of_two():
    x = cresset.tensor([6.0, 0.1, 3e38], requires_grad=True)
    (grad,) = cresset.autograd.grad(cresset.frexp(x).mantissa.sum(), x)
    assert grad.tolist() == [2.0**-3, 2.0**3, 2.0**-128]
