"""Special functions: the error function and its relatives, gamma functions, Bessel functions, orthogonal polynomials.

Most are computed in double precision whatever the type: their series would show rounding errors in single precision.
"""

import math

from . import chebyshev_series as series
from . import primitives as p
from .arithmetic import sgn
from .chebyshev_series import chebyshev_sum
from .definition import pointwise
from .exponential import exp, log
from .selection import where

DIGAMMA_SERIES = (1 / 12, 1 / 120, 1 / 252, 1 / 240, 1 / 132, 691 / 32760, 1 / 12)
TWO_OVER_SQRT_PI, SQRT_HALF = 2 / math.sqrt(math.pi), math.sqrt(0.5)


# The error function.


@pointwise(examples=[(0.0, 0.0), (1.0, 0.8427007929497149)])
def erf(x):
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    return p.erf(x)


@erf.derivative
def _(x):
    return TWO_OVER_SQRT_PI * exp(-(x * x))


@pointwise(examples=[(0.0, 1.0), (10.0, 2.088487583762545e-45)])
def erfc(x):
    """1 - erf(x), accurate also where erf(x) is near 1."""
    return p.erfc(x)


@erfc.derivative
def _(x):
    return -TWO_OVER_SQRT_PI * exp(-(x * x))


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, 0.427583576155807), (1e10, 5.641895835477563e-11)])
def erfcx(x):
    """exp(x^2) erfc(x), which stays a number where erfc(x) is too small to be one."""
    return p.in_type_of(_erfcx(p.in_double(x)), x)


@erfcx.derivative
def _(x, output):
    return 2 * x * output - TWO_OVER_SQRT_PI


def _erfcx(x):
    positive = _erfcx_of_size(p.absolute(x))
    return where(x < 0, 2 * p.exp(x * x) - positive, positive)


def _erfcx_of_size(size):
    # (size - 4) / (size + 4), written so that an infinite size gives 1.
    return chebyshev_sum(series.ERFCX, 1 - 8 / (size + 4)) / (1 + 2 * size)


@pointwise(examples=[(0.0, 0.0), (0.5, 0.4769362762044699), (1.0, float("inf")), (2.0, float("nan"))])
def erfinv(x):
    """The inverse of erf."""
    size = p.absolute(x)
    return where(size == 1, x * p.INF, p.copysign(p.erf_inverse(size, 1 - size), x))


@erfinv.derivative
def _(output):
    return (1 / TWO_OVER_SQRT_PI) * exp(output * output)


@pointwise(method=False, examples=[(0.0, 0.5), (1.0, 0.8413447460685429)])
def ndtr(x):
    """The probability that a standard normal variable is below x."""
    return 0.5 * p.erfc(x * -SQRT_HALF)


@ndtr.derivative
def _(x):
    return (1 / math.sqrt(2 * math.pi)) * exp(-0.5 * (x * x))


@pointwise(method=False, examples=[(0.0, math.log(0.5)), (-50.0, -1254.8313611394194)])
def log_ndtr(x):
    """log(ndtr(x)), also where ndtr(x) is too small to be a number."""
    z = p.in_double(x)
    t = z * SQRT_HALF
    scaled = 0.5 * _erfcx_of_size(p.absolute(t))
    return p.in_type_of(where(z < 0, p.log(scaled) - t * t, p.log1p(-scaled * p.exp(-(t * t)))), x)


@log_ndtr.derivative
def _(x):
    return math.sqrt(2 / math.pi) / erfcx(x * -SQRT_HALF)


@pointwise(method=False, examples=[(0.5, 0.0), (0.975, 1.959963984540054), (0.0, float("-inf"))])
def ndtri(x):
    """The inverse of ndtr: the quantile of a standard normal variable."""
    z = p.in_double(x)
    low = where(z < 0.5, z, 1 - z)
    quantile = math.sqrt(2) * p.erf_inverse(1 - 2 * low, 2 * low)
    inside = where(z < 0.5, -quantile, where(z == 0.5, 0, quantile))
    return p.in_type_of(where(z == 0, -p.INF, where(z == 1, p.INF, inside)), x)


@ndtri.derivative
def _(output):
    return math.sqrt(2 * math.pi) * exp(0.5 * (output * output))


# Gamma functions.


@pointwise(examples=[(1.0, 0.0), (4.0, math.log(6)), (-1.0, float("inf"))])
def lgamma(x):
    """The logarithm of the absolute value of the gamma function."""
    return p.in_type_of(p.lgamma(p.in_double(x)), x)


@lgamma.derivative
def _(x):
    return digamma(x)


@pointwise(examples=[(1.0, -0.5772156649015329), (0.5, -1.9635100260214235), (-0.5, 0.03648997397857652)])
def digamma(x):
    """The derivative of lgamma; infinite at 0, nan at the negative whole numbers."""
    return p.in_type_of(_digamma(p.in_double(x)), x)


@digamma.derivative
def _(x):
    return polygamma_elementwise(x, 1)


def _digamma(x):
    # Reflection: psi(x) = psi(1 - x) - pi / tan(pi x). The fraction of x is all the tangent needs.
    fraction = x - p.trunc(x)
    reflected = x < 0
    z = where(reflected, 1 - x, x)
    total = where(reflected, -math.pi / p.tan(math.pi * fraction), 0)
    # psi(z) = psi(z + 1) - 1 / z until z is at least 10, then the asymptotic series.
    for _ in range(10):
        small = z < 10
        total = total - where(small, 1 / z, 0)
        z = where(small, z + 1, z)
    inverse, tail = 1 / (z * z), 0
    for coefficient in reversed(DIGAMMA_SERIES):
        tail = inverse * (coefficient - tail)
    value = total + p.log(z) - 0.5 / z - tail
    return where(x == 0, p.copysign(p.INF, -x), where(reflected & (fraction == 0), p.NAN, value))


@pointwise(method=False)
def zeta(x, y):
    """The Hurwitz zeta function: the sum of (k + y)^-x over k = 0, 1, 2, ..."""
    return p.in_type_of(p.zeta(p.in_double(x), p.in_double(y)), x)


@zeta.derivative
def _(x, y):
    return None, -x * zeta(x + 1, y)


@pointwise(method=False)
def polygamma_elementwise(x, n: int):
    """The derivative of order n of digamma; n is not negative."""
    z, order = p.in_double(x), p.in_double(n)
    factorial = p.exp(p.lgamma(order + 1))
    series_value = where((n & 1) == 0, -factorial, factorial) * p.zeta(order + 1, z)
    return p.in_type_of(where(n == 0, _digamma(z), series_value), x)


@polygamma_elementwise.derivative
def _(x, n):
    return polygamma_elementwise(x, n + 1)


@pointwise(result="same")
def igamma(x, y):
    """The regularized lower incomplete gamma function with parameter x at y."""
    return p.in_type_of(p.igamma(p.in_double(x), p.in_double(y)), x)


@igamma.derivative
def _(x, y):
    return None, gamma_density(x, y)


@pointwise(result="same")
def igammac(x, y):
    """The regularized upper incomplete gamma function with parameter x at y."""
    return p.in_type_of(p.igammac(p.in_double(x), p.in_double(y)), x)


@igammac.derivative
def _(x, y):
    return None, -gamma_density(x, y)


@pointwise(method=False, result="same")
def gamma_density(x, y):
    """y^(x - 1) exp(-y) / gamma(x): the density of a gamma distribution with concentration x at y."""
    a, at = p.in_double(x), p.in_double(y)
    # With a large concentration the logarithms nearly cancel; the weight has done that on paper.
    return p.in_type_of(where(a < 20, exp((a - 1) * log(at) - at - lgamma(a)), p.gamma_weight(a, at) * a / at), x)


@gamma_density.derivative
def _(x, y, output):
    return None, output * ((x - 1) / y - 1)


# Modified Bessel functions.


@pointwise(examples=[(0.0, 1.0), (1.0, 1.2660658777520084), (-10.0, 2815.716628466254)])
def i0(x):
    """The modified Bessel function of the first kind of order 0."""
    size = p.absolute(p.in_double(x))
    return p.in_type_of(p.exp(size) * _i0e(size), x)


@i0.derivative
def _(x):
    return i1(x)


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, 0.46575960759364043)])
def i0e(x):
    """exp(-|x|) i0(x)."""
    return p.in_type_of(_i0e(p.absolute(p.in_double(x))), x)


@i0e.derivative
def _(x, output):
    return i1e(x) - sgn(x) * output


@pointwise(method=False, examples=[(0.0, 0.0), (1.0, 0.565159103992485), (-1.0, -0.565159103992485)])
def i1(x):
    """The modified Bessel function of the first kind of order 1."""
    z = p.in_double(x)
    size = p.absolute(z)
    return p.in_type_of(p.copysign(p.exp(size) * _i1e(size), z), x)


@i1.derivative
def _(x, output):
    return where(x == 0, 0.5, i0(x) - output / x)


@pointwise(method=False, examples=[(0.0, 0.0), (1.0, 0.2079104153497085)])
def i1e(x):
    """exp(-|x|) i1(x)."""
    z = p.in_double(x)
    return p.in_type_of(p.copysign(_i1e(p.absolute(z)), z), x)


@i1e.derivative
def _(x, output):
    return where(x == 0, 0.5, i0e(x) - output * sgn(x) - output / x)


def _i0e(size):
    near = chebyshev_sum(series.I0E_NEAR, size * 0.25 - 1)
    return where(size <= 8, near, chebyshev_sum(series.I0E_FAR, 16 / size - 1) / p.sqrt(size))


def _i1e(size):
    near = size * chebyshev_sum(series.I1E_NEAR, size * 0.25 - 1)
    return where(size <= 8, near, chebyshev_sum(series.I1E_FAR, 16 / size - 1) / p.sqrt(size))


def _k0(x, growth):
    """K0(x) times 1 (growth False) or exp(x)."""
    near = chebyshev_sum(series.K0_NEAR, x * x * 0.5 - 1) - p.log(0.5 * x) * (p.exp(x) * _i0e(x))
    far = chebyshev_sum(series.K0E_FAR, 4 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth)


def _k1(x, growth):
    near = chebyshev_sum(series.K1_NEAR, x * x * 0.5 - 1) / x + p.log(0.5 * x) * (p.exp(x) * _i1e(x))
    far = chebyshev_sum(series.K1E_FAR, 4 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth)


def _second_kind(x, near, far, growth):
    near, far = (near * p.exp(x), far) if growth else (near, far * p.exp(-x))
    return where(x == 0, p.INF, where(x < 0, p.NAN, where(x <= 2, near, far)))


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, 1.2660658777520084)])
def modified_bessel_i0(x):
    """The modified Bessel function of the first kind of order 0."""
    size = p.absolute(p.in_double(x))
    return p.in_type_of(p.exp(size) * _i0e(size), x)


@pointwise(method=False, examples=[(1.0, 0.565159103992485)])
def modified_bessel_i1(x):
    """The modified Bessel function of the first kind of order 1."""
    z = p.in_double(x)
    size = p.absolute(z)
    return p.in_type_of(p.copysign(p.exp(size) * _i1e(size), z), x)


@pointwise(method=False, examples=[(1.0, 0.42102443824070834), (0.0, float("inf")), (-1.0, float("nan"))])
def modified_bessel_k0(x):
    """The modified Bessel function of the second kind of order 0."""
    return p.in_type_of(_k0(p.in_double(x), growth=False), x)


@pointwise(method=False, examples=[(1.0, 0.6019072301972346)])
def modified_bessel_k1(x):
    """The modified Bessel function of the second kind of order 1."""
    return p.in_type_of(_k1(p.in_double(x), growth=False), x)


@pointwise(method=False, examples=[(1.0, 1.1444630798068947)])
def scaled_modified_bessel_k0(x):
    """exp(x) times the modified Bessel function of the second kind of order 0."""
    return p.in_type_of(_k0(p.in_double(x), growth=True), x)


@pointwise(method=False, examples=[(1.0, 1.6361534862632582)])
def scaled_modified_bessel_k1(x):
    """exp(x) times the modified Bessel function of the second kind of order 1."""
    return p.in_type_of(_k1(p.in_double(x), growth=True), x)


# Bessel and Airy functions; the C library has them.


@pointwise(method=False)
def bessel_j0(x):
    """The Bessel function of the first kind of order 0."""
    return p.in_type_of(p.bessel_j0(p.in_double(x)), x)


@pointwise(method=False)
def bessel_j1(x):
    """The Bessel function of the first kind of order 1."""
    return p.in_type_of(p.bessel_j1(p.in_double(x)), x)


@pointwise(method=False)
def bessel_y0(x):
    """The Bessel function of the second kind of order 0."""
    return p.in_type_of(p.bessel_y0(p.in_double(x)), x)


@pointwise(method=False)
def bessel_y1(x):
    """The Bessel function of the second kind of order 1."""
    return p.in_type_of(p.bessel_y1(p.in_double(x)), x)


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, math.sin(1))])
def spherical_bessel_j0(x):
    """sin(x) / x, and 1 for 0."""
    z = p.in_double(x)
    return p.in_type_of(where(p.absolute(z) == p.INF, 0, where(z == 0, 1, p.sin(z) / z)), x)


@pointwise(method=False)
def airy_ai(x):
    """The Airy function Ai."""
    return p.in_type_of(p.airy_ai(p.in_double(x)), x)


# Orthogonal polynomials of degree n in x; a fraction of n is dropped, a negative n gives 0.


def _polynomial(name, primitive, words, shifted=False):
    def formula(x, n):
        z = 2 * p.in_double(x) - 1 if shifted else p.in_double(x)
        return p.in_type_of(primitive(z, p.in_double(n)), x)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"The {words} polynomial of degree n at {'2 x - 1' if shifted else 'x'}."
    return pointwise(method=False)(formula)


for _kind, _words in (("t", "first"), ("u", "second"), ("v", "third"), ("w", "fourth")):
    _primitive = getattr(p, f"chebyshev_{_kind}")
    _polynomial(f"chebyshev_polynomial_{_kind}", _primitive, f"Chebyshev, {_words} kind,")
    _polynomial(f"shifted_chebyshev_polynomial_{_kind}", _primitive, f"Chebyshev, {_words} kind,", shifted=True)
_polynomial("hermite_polynomial_h", p.hermite_h, "(physicist's) Hermite")
_polynomial("hermite_polynomial_he", p.hermite_he, "(probabilist's) Hermite")
_polynomial("laguerre_polynomial_l", p.laguerre_l, "Laguerre")
_polynomial("legendre_polynomial_p", p.legendre_p, "Legendre")
