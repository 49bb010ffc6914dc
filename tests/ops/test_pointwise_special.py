"""Special functions: where their usual sums fail, and single precision beside double."""

import math
import struct

import pytest

import cresset


class TestIncompleteGammaFunctionsOfLargeParameters:
    """At x = a the part below is 1/2 + 1 / (3 sqrt(2 pi a)) + ..., and moves by the normal distribution around it."""

    @pytest.mark.parametrize("a", [1e6, 1e8, 1e10, 1e15, 1e20, 1e30, 1e300])
    def test_half_lies_below_the_parameter(self, a):
        x = cresset.tensor(a, dtype=cresset.float64)
        below = 0.5 + 1 / (3 * math.sqrt(2 * math.pi * a))
        assert cresset.special.gammainc(x, x).item() == pytest.approx(below, rel=1e-12)
        assert cresset.special.gammaincc(x, x).item() == pytest.approx(1 - below, rel=1e-12)

    @pytest.mark.parametrize("a", [1e10, 1e15])
    def test_one_deviation_from_it(self, a):
        at = cresset.tensor(a - math.sqrt(a), dtype=cresset.float64)
        below = cresset.special.gammainc(cresset.tensor(a, dtype=cresset.float64), at).item()
        assert below == pytest.approx(math.erfc(math.sqrt(0.5)) / 2, rel=10 / math.sqrt(a))

    def test_far_from_it_nothing_or_all_lies_below(self):
        a = cresset.tensor([1e8, 1e30, 1e37])
        assert cresset.igamma(a, a / 2).tolist() == [0, 0, 0] and cresset.igammac(a, a / 2).tolist() == [1, 1, 1]
        assert cresset.igamma(a, a * 2).tolist() == [1, 1, 1] and cresset.igamma(a, a * 1e-37).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("a", [100.0, 1e6, 1e30])
    def test_the_slope_is_the_density(self, a):
        x = cresset.tensor(a, dtype=cresset.float64, requires_grad=True)
        cresset.special.gammainc(x.detach(), x).backward()
        assert x.grad.item() == pytest.approx((1 - 1 / (12 * a)) / math.sqrt(2 * math.pi * a), rel=1e-5)

    def test_slopes_of_slopes(self):
        a = cresset.tensor([0.5, 3.0, 40.0], dtype=cresset.float64)
        x = cresset.tensor([0.7, 2.0, 45.0], dtype=cresset.float64, requires_grad=True)
        for function in (cresset.special.gammainc, cresset.special.gammaincc):
            assert cresset.autograd.gradgradcheck(lambda x: function(a, x), (x,))  # noqa: B023


def units_apart(got, expected):
    """How many units in the last place of single precision are between a float32 number and an exact one."""
    if got == expected or (got != got and expected != expected):
        return 0.0
    if abs(expected) > 3.4028235677973366e38:  # beyond what rounds to the largest number
        return 0.0 if got == math.copysign(math.inf, expected) else math.inf
    return abs(got - expected) / 2.0 ** max(math.frexp(expected)[1] - 24, -149)


def places(low, high):
    """Numbers of single precision between the ends, more of them towards 0, and those beside whole numbers."""
    even = [low + (high - low) * (k + 0.37) / 3000 for k in range(3000)]
    small = [s * math.exp(-k / 9) for k in range(400) for s in (-1, 1)]
    beside = [k + d for k in range(math.ceil(low), int(min(high, 40))) for d in (-1e-5, -1e-6, 1e-6, 1e-5)]
    return [struct.unpack("f", struct.pack("f", v))[0] for v in even + small + beside if low <= v <= high]


class TestSinglePrecision:
    """The functions of float32 tensors have formulas that vectorize; those of float64 have the C library's digits."""

    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [("bessel_j0", -60, 60), ("bessel_j1", -60, 60), ("bessel_y0", 0, 60), ("bessel_y1", 0, 60),
            ("bessel_j0", 1e3, 1e6),
         ("gammaln", -30, 60), ("gammaln", 1e3, 1e30), ("digamma", -30, 60), ("airy_ai", -60, 60), ("i0e", -40, 40),
         ("i1e", -40, 40), ("i0", -80, 80), ("i1", -80, 80), ("spherical_bessel_j0", -300, 300)],
    )  # fmt: skip
    def test_is_double_precision_rounded_once(self, name, low, high):
        function = getattr(cresset.special, name)
        x = cresset.tensor(places(low, high))
        apart = map(units_apart, function(x).tolist(), function(x.double()).tolist())
        worst, at = max(zip(apart, x.tolist(), strict=True))
        assert worst <= 0.51, at

    def test_polygamma_is_double_precision_rounded_once(self):
        x = cresset.tensor(places(-30, 60))
        for n in (1, 2, 3):
            single, double = cresset.polygamma(n, x), cresset.polygamma(n, x.double())
            assert max(map(units_apart, single.tolist(), double.tolist())) <= 0.51, n

    @pytest.mark.parametrize("name", ["igamma", "igammac"])
    def test_incomplete_gamma_functions(self, name):
        function = getattr(cresset, name)
        a = cresset.tensor([0.01, 0.5, 1.0, 3.25, 19.0, 21.0, 150.0, 4e4]).unsqueeze(1)
        x = a * cresset.tensor([1e-3, 0.1, 0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5, 3.0, 20.0])
        apart = map(units_apart, function(a, x).flatten().tolist(), function(a.double(), x.double()).flatten().tolist())
        assert max(apart) <= 0.6

    @pytest.mark.parametrize(
        "name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "gammaln", "digamma", "airy_ai"]
    )
    def test_the_ends_of_the_numbers_are_those_of_double_precision(self, name):
        function, ends = (
            getattr(cresset.special, name),
            [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, -1.0, -2.0],
        )
        for values in (ends, [0.0], [-0.0], [math.inf], [2.0, math.nan]):  # some alone: loops look what they are given
            x = cresset.tensor(values)
            single, double = function(x).tolist(), function(x.double()).float().tolist()
            assert list(map(repr, single)) == list(map(repr, double)), values

    def test_angles_beyond_the_quick_reduction(self):
        x = cresset.tensor([3.0e6, 1.25e9, 1e30, 7.0, -4e7])
        for name in ("bessel_j0", "bessel_j1"):
            function = getattr(cresset.special, name)
            assert max(map(units_apart, function(x).tolist(), function(x.double()).tolist())) <= 0.51


@pytest.mark.parametrize(
    ("name", "x", "value"),
    [("digamma", 0.1, -10.423754940411076), ("digamma", 1.4616321449683622, 0.0), ("digamma", 25.5, 3.2189424728839198),
     ("digamma", -7.25, 5.189977214956288), ("airy_ai", 1.5, 0.07174949700810541),
     ("airy_ai", 10.0, 1.1047532552898686e-10),
     ("airy_ai", -4.75, 0.37593203432914213), ("airy_ai", -30.0, -0.08796818845684216)],
)  # fmt: skip
def test_values_of_double_precision(name, x, value):
    got = getattr(cresset.special, name)(cresset.tensor(x, dtype=cresset.float64)).item()
    assert got == pytest.approx(value, rel=1e-13, abs=1e-15)  # far out the angle of the wave is rounded


def test_trigamma_in_double_precision():
    x = cresset.tensor([0.25, 1.0, 2.75, 40.0, -0.5, -3.125], dtype=cresset.float64)
    values = [
        17.19732915450711,
        math.pi**2 / 6,
        0.43757125764893073,
        0.02531510384129103,
        8.934802200544679,
        67.11971770191228,
    ]
    assert cresset.polygamma(1, x).tolist() == pytest.approx(values, rel=1e-13)


def hermite(x, n):
    before, last = 0.0, 1.0
    for k in range(n):
        before, last = last, 2 * x * last - 2 * k * before
    return last


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16])
@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_bessel_functions_have_second_derivatives_in_half_precision(name, dtype):
    def second(dtype):
        x = cresset.tensor([-2.0, -0.5, 0.25, 1.5], dtype=dtype, requires_grad=True)
        first = cresset.autograd.grad(getattr(cresset.special, name)(x).sum(), x, create_graph=True)[0]
        return cresset.autograd.grad(first.sum(), x)[0]

    got, eps = second(dtype), cresset.finfo(dtype).eps
    assert got.dtype == dtype
    assert got.tolist() == pytest.approx(second(cresset.float64).tolist(), rel=8 * eps, abs=eps)


def legendre(x, n):
    before, last = 0.0, 1.0
    for k in range(n):
        before, last = last, ((2 * k + 1) * x * last - k * before) / (k + 1)
    return last


@pytest.mark.parametrize("count", [1, 7, 8, 9, 37])
@pytest.mark.parametrize(("name", "value"), [("hermite_polynomial_h", hermite), ("legendre_polynomial_p", legendre)])
def test_polynomials_of_different_degrees_in_one_call(name, value, count):
    degrees = [(5 * k) % 11 for k in range(count)]
    x = [math.sin(k) for k in range(count)]
    at, n = cresset.tensor(x, dtype=cresset.float64), cresset.tensor(degrees, dtype=cresset.float64)
    got = getattr(cresset.special, name)(at, n).tolist()
    assert got == pytest.approx([value(at, n) for at, n in zip(x, degrees, strict=True)], rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
@pytest.mark.parametrize("kind", "tuvw")
def test_chebyshev_polynomials_of_high_degrees_are_circular_functions(kind, dtype):
    angles = [0.1 + 0.02 * k for k in range(149)]
    x = cresset.tensor([math.cos(a) for a in angles], dtype=dtype)
    turned = {"t": lambda a, n: math.cos(n * a), "u": lambda a, n: math.sin((n + 1) * a) / math.sin(a),
              "v": lambda a, n: math.cos((n + 0.5) * a) / math.cos(a / 2),
              "w": lambda a, n: math.sin((n + 0.5) * a) / math.sin(a / 2)}[kind]  # fmt: skip
    function = getattr(cresset.special, f"chebyshev_polynomial_{kind}")
    for n in (0, 5, 7, 9, 20, 32, 33, 400):
        expected = [turned(math.acos(at), n) for at in x.tolist()]
        assert function(x, n).tolist() == pytest.approx(
            expected, rel=1e-6 if dtype is cresset.float32 else 1e-11, abs=1e-10
        )
    ends = function(cresset.tensor([1.0, -1.0], dtype=dtype), 41).tolist()
    assert ends == {"t": [1, -1], "u": [42, -42], "v": [1, -83], "w": [83, -1]}[kind]


@pytest.mark.parametrize("degree", [-1.0, -0.5, 0.0, 0.75, 1.5, math.nan, 2e6])
def test_degrees_that_are_no_whole_numbers(degree):
    expected = {-1.0: 0.0, -0.5: 1.0, 0.0: 1.0, 0.75: 1.0, 1.5: 0.25, 2e6: math.nan}.get(degree, math.nan)
    got = cresset.special.legendre_polynomial_p(cresset.tensor([0.25]), degree).item()
    assert got == expected or (math.isnan(got) and math.isnan(expected))


class TestPowersInDoublePrecision:
    NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e300, -1e300,
        1e-300, 5e-324,
               -5e-324, 1.7976931348623157e308, 9007199254740993.0, 4503599627370497.0, -4503599627370497.0, 2.5,
               1e18]  # fmt: skip

    def test_are_those_of_the_math_module_to_one_unit(self):
        base = [math.exp(k / 7) for k in range(-600, 600)]
        exponent = [math.sinh(k / 120) * (-1) ** k for k in range(-600, 600)]
        got = cresset.pow(cresset.tensor(base, dtype=cresset.float64), cresset.tensor(exponent, dtype=cresset.float64))
        for x, y, value in zip(base, exponent, got.tolist(), strict=True):
            try:
                expected = math.pow(x, y)
            except OverflowError:
                expected = math.inf
            assert value == expected or abs(value - expected) <= math.ulp(expected), (x, y)

    def test_ends_of_the_numbers(self):
        def power(x, y):
            try:
                return math.pow(x, y)
            except OverflowError:
                return -math.inf if x < 0 and y % 2 == 1 else math.inf
            except ValueError:  # a pole, or a root of a negative number
                return math.copysign(math.inf, x) if x == 0 and y % 2 == 1 else math.inf if x == 0 else math.nan

        pairs = [(x, y) for x in self.NUMBERS for y in self.NUMBERS]
        got = cresset.pow(
            *(cresset.tensor(column, dtype=cresset.float64) for column in zip(*pairs, strict=True))
        ).tolist()
        for (x, y), value in zip(pairs, got, strict=True):
            expected = power(x, y)
            same = math.isnan(value) and math.isnan(expected)
            assert same or abs(value - expected) <= math.ulp(expected) or value == expected, (x, y, value)
            assert same or math.copysign(1, value) == math.copysign(1, expected), (x, y, value)

    def test_whole_powers_that_a_double_holds_are_exact(self):
        pairs = [(a, b) for a in range(2, 60) for b in range(4, 30) if a**b < 2**53]
        base, exponent = (cresset.tensor(column, dtype=cresset.float64) for column in zip(*pairs, strict=True))
        assert cresset.pow(base, exponent).tolist() == [a**b for a, b in pairs]
