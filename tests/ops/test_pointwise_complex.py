"""Functions of complex numbers, against Python's cmath: at zeros with signs, infinities, nan, and anywhere."""

import cmath
import math
import random

import pytest

import cresset

NAMES = "exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.0,
    1e-300,
    -1e-20,
    1e20,
    -1e300,
    1e308,
    20.0,
    -700.0,
    math.inf,
    -math.inf,
    math.nan,
]


def by_cmath(name, z):
    """The value, or None where cmath raises instead, or is older than the standard's correction for 0 beside nan."""
    if cmath.isnan(z) and 0 in (z.real, z.imag):
        return None
    try:
        return getattr(cmath, name)(z)
    except (ValueError, OverflowError):
        return None


def agree(z, got, expected, unit):
    """Part by part: equal signs of zeros, infinities and nan in the same place, else within 8 units of the larger
    part."""
    size = max((abs(part) for part in (expected.real, expected.imag) if math.isfinite(part)), default=0.0)
    # With a nan, or two infinities, the standard leaves some signs open.
    undecided = cmath.isnan(expected) or (math.isinf(z.real) and math.isinf(z.imag))
    for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
        if math.isnan(b):
            right = math.isnan(a)
        elif math.isinf(b) or b == 0:
            right = abs(a) == abs(b) and (undecided or math.copysign(1, a) == math.copysign(1, b))
            right = right or (b == 0 and abs(a) <= 8 * unit * size and size > 0)
        else:
            right = abs(a - b) <= 8 * unit * size
        if not right:
            return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_the_standard(name):
    points = [complex(x, y) for x in SPECIAL for y in SPECIAL]
    results = getattr(cresset, name)(cresset.tensor(points, dtype=cresset.complex128)).tolist()
    known = [(z, got, by_cmath(name, z)) for z, got in zip(points, results, strict=True)]
    assert sum(expected is not None for *_, expected in known) > 170
    assert [row for row in known if row[2] is not None and not agree(*row, 2.3e-16)] == []


@pytest.mark.parametrize("dtype, unit", [(cresset.complex64, 1.2e-7), (cresset.complex128, 2.3e-16)])
@pytest.mark.parametrize("name", NAMES)
def test_values_anywhere_are_near_those_of_cmath(name, dtype, unit):
    generator = random.Random(0)
    size = [10 ** generator.uniform(-3, 1) for _ in range(1000)]
    points = cresset.tensor([complex(generator.gauss(0, s), generator.gauss(0, s)) for s in size], dtype=dtype)
    results = getattr(cresset, name)(points).tolist()
    wrong = [
        (z, got, by_cmath(name, z))
        for z, got in zip(points.tolist(), results, strict=True)
        if not agree(z, got, by_cmath(name, z), unit)
    ]
    assert wrong == []


def test_the_airy_function_between_and_at_its_zeros():
    x = cresset.tensor([-20.1, -5.0, -2.0, -1.0, 0.0, 1.0, 5.0, 60.0], dtype=cresset.float64)
    expected = [
        -0.2453617393, 0.3507610090, 0.2274074282, 0.5355608833, 0.3550280539, 0.1352924163, 1.0834442814e-4,
        2.7831487095e-136,
    ]  # fmt: skip
    cresset.testing.assert_close(
        cresset.special.airy_ai(x), cresset.tensor(expected, dtype=cresset.float64), rtol=1e-9, atol=0
    )
    zero = cresset.tensor(-2.338107410459767, dtype=cresset.float64)  # the first
    assert abs(cresset.special.airy_ai(zero).item()) < 1e-15


def test_a_complex_zero_to_the_power_of_zero_is_one():
    x = cresset.tensor([0, 2j], requires_grad=True)
    y = x**0
    assert y.tolist() == [1, 1]
    y.real.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_a_number_on_the_left_of_infinity_keeps_its_imaginary_part():
    assert (1j + cresset.tensor([float("inf")])).tolist() == [complex(float("inf"), 1)]
