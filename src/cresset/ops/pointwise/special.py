"""Special functions: the error function and its relatives, gamma functions, Bessel functions.

Most are computed in double precision whatever the type: their series would show rounding errors in single precision.
Their `single` formulas, which CUDA has, compute the common arguments in single precision, by polynomials whose rounding
errors stay at a few units in the last place, and only the others in double.
"""

import math

from . import chebyshev_series as series
from . import primitives as p
from . import single_series as single
from .arithmetic import sgn, square
from .chebyshev_series import chebyshev_sum, polynomial_sum, power_sum, short_sum
from .definition import pointwise
from .exponential import exp, log
from .expression import cast
from .selection import where

TWO_OVER_SQRT_PI, SQRT_HALF = 2 / math.sqrt(math.pi), math.sqrt(0.5)


# The error function.


@pointwise(examples=[(0.0, 0.0), (1.0, 0.8427007929497149)], onnx="Erf")
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


@pointwise(
    node="SpecialErfcxBackward0",
    method=False,
    examples=[(0.0, 1.0), (1.0, 0.427583576155807), (1e10, 5.641895835477563e-11)],
)
def erfcx(x):
    """exp(x^2) erfc(x), which stays a number where erfc(x) is too small to be one."""
    return p.in_type_of(_erfcx(p.in_double(x)), x)


@erfcx.single
def _(x):
    return p.erfcx(x)


@erfcx.derivative
def _(x, output):
    return 2 * x * output - TWO_OVER_SQRT_PI


def _erfcx(x):
    positive = _erfcx_of_size(p.absolute(x))
    return where(x < 0, 2 * p.exp(x * x) - positive, positive)


def _erfcx_of_size(size):
    # (size - 4) / (size + 4), written so that an infinite size gives 1.
    return chebyshev_sum(series.ERFCX, 1 - 8 / (size + 4)) / (1 + 2 * size)


@pointwise(
    examples=[(0.0, 0.0), (0.5, 0.4769362762044699), (1.0, float("inf")), (2.0, float("nan"))], autocast="float32"
)
def erfinv(x):
    """The inverse of erf."""
    size = p.absolute(x)
    return where(size == 1, x * p.INF, p.copysign(p.erf_inverse(size, 1 - size), x))


@erfinv.derivative
def _(x):
    return (1 / TWO_OVER_SQRT_PI) * exp(square(erfinv(x)))


@pointwise(node="MulBackward1", method=False, examples=[(0.0, 0.5), (1.0, 0.8413447460685429)])
def ndtr(x):
    """The probability that a standard normal variable is below x."""
    return 0.5 * p.erfc(x * -SQRT_HALF)


@ndtr.derivative
def _(x):
    return (1 / math.sqrt(2 * math.pi)) * exp(-0.5 * (x * x))


@pointwise(node="SpecialLogNdtrBackward0", method=False, examples=[(0.0, math.log(0.5)), (-50.0, -1254.8313611394194)])
def log_ndtr(x):
    """log(ndtr(x)), also where ndtr(x) is too small to be a number."""
    z = p.in_double(x)
    t = z * SQRT_HALF
    scaled = 0.5 * _erfcx_of_size(p.absolute(t))
    return p.in_type_of(where(z < 0, p.log(scaled) - t * t, p.log1p(-scaled * p.exp(-(t * t)))), x)


@log_ndtr.single
def _(x):
    return p.log_ndtr(x)


@log_ndtr.derivative
def _(x):
    return math.sqrt(2 / math.pi) / erfcx(x * -SQRT_HALF)


@pointwise(
    node="SpecialNdtriBackward0", method=False, examples=[(0.5, 0.0), (0.975, 1.959963984540054), (0.0, float("-inf"))]
)
def ndtri(x):
    """The inverse of ndtr: the quantile of a standard normal variable."""
    z = p.in_double(x)
    low = where(z < 0.5, z, 1 - z)
    quantile = math.sqrt(2) * p.erf_inverse(1 - 2 * low, 2 * low)
    inside = where(z < 0.5, -quantile, where(z == 0.5, 0, quantile))
    return p.in_type_of(where(z == 0, -p.INF, where(z == 1, p.INF, inside)), x)


@ndtri.single
def _(x):
    return where(x == 0.5, 0, p.normal_quantile(x))


@ndtri.derivative
def _(output):
    return math.sqrt(2 * math.pi) * exp(0.5 * (output * output))


# Gamma functions.


@pointwise(examples=[(1.0, 0.0), (4.0, math.log(6)), (-1.0, float("inf"))])
def lgamma(x):
    """The logarithm of the absolute value of the gamma function."""
    # The C library has every digit of a double also near the zeros left of 0, but does not vectorize.
    return p.lgamma(x) if x.type == "f64" else p.in_type_of(_lgamma(p.in_double(x)), x)


@lgamma.single
def _(x):
    low, lowest = x < 1.5, x < 0.5
    t = where(lowest, x, where(low, x - 1, x - 2))
    product = where(lowest, x * (x + 1), where(low, x, 1))
    near = t * power_sum(single.LGAMMA, t) - p.log(product)
    return where(x >= 0, where(x < 2.5, near, p.lgamma(x)), p.in_type_of(_lgamma(p.in_double(x)), x))


@lgamma.derivative
def _(x):
    return digamma(x)


def _lgamma(x):
    size = p.absolute(x)
    # Below 2.5: lgamma(z) of a z from 1.5 to 2.5, less the logarithm of size or size (size + 1). Beyond: Stirling's
    # formula.
    beyond, low, lowest = size >= 2.5, size < 1.5, size < 0.5
    z = where(lowest, size + 2, where(low, size + 1, size))
    product = where(lowest, size * (size + 1), where(low, size, 1))
    logarithm = p.log(where(beyond, size, product))
    near = (z - 2) * polynomial_sum(series.LGAMMA_NEAR, 2 * z - 4) - logarithm
    tail = polynomial_sum(series.LGAMMA_FAR, 12.5 / (size * size) - 1) / size
    far = (size - 0.5) * logarithm - size + (0.5 * math.log(2 * math.pi) + tail)
    value = where(beyond, far, near)
    # Left of 0 by reflection: |gamma(x)| is pi / |x sin(pi x)| / gamma(|x|).
    sine = p.absolute(_sin_of_pi(size - p.rint(size)))
    reflected = p.log(math.pi / (size * sine)) - value
    return p.usually((x >= 0) & (x < p.INF), value, where(size == p.INF, p.INF, where(x < 0, reflected, value)))


def _sin_of_pi(x):
    """sin(pi x) for |x| <= 1/2."""
    return x * polynomial_sum(series.SIN_OF_PI, 8 * (x * x) - 1)


@pointwise(examples=[(1.0, -0.5772156649015329), (0.5, -1.9635100260214235), (-0.5, 0.03648997397857652)])
def digamma(x):
    """The derivative of lgamma; infinite at 0, nan at the negative whole numbers."""
    return p.in_type_of(_digamma(p.in_double(x)), x)


@digamma.single
def _(x):
    z, below = where(x < 1, x + 1, x), where(x < 1, 1 / x, 0)
    near = _beside(z, DIGAMMA_ZERO) * power_sum(single.DIGAMMA, 2 * z - 3) - below
    inverse = 1 / x
    far = p.log(x) - inverse * (0.5 + inverse * power_sum(single.DIGAMMA_FAR, inverse * inverse))
    positive = where(x < 2, near, far)
    return where(x > 0, positive, p.in_type_of(_digamma(p.in_double(x)), x))


@digamma.derivative
def _(x):
    return trigamma(x)


def _digamma(x):
    # Reflection: psi(x) = psi(1 - x) - pi / tan(pi x). The fraction of x is all the tangent needs.
    fraction, reflected = x - p.rint(x), x < 0
    cosine = polynomial_sum(series.COS_OF_PI, 8 * (fraction * fraction) - 1)
    turned = math.pi * cosine / _sin_of_pi(fraction)
    # psi(z) = psi(z + 1) - 1 / z until z is at least 3, then Stirling's formula.
    z, steps = _three_steps(where(reflected, 1 - x, x), lambda z: z)
    inverse = 1 / z
    tail = inverse * (inverse * polynomial_sum(series.DIGAMMA_FAR, 18 * (inverse * inverse) - 1) - 0.5)
    value = (p.log(z) + tail) - steps
    value = where(x == 0, p.copysign(p.INF, -x), value)
    return p.usually(x >= 0, value, where(reflected & (fraction == 0), p.NAN, where(reflected, value - turned, value)))


# The digits of a zero of a function that single precision has, and the next ones.
DIGAMMA_ZERO = (1.46163213253021240234375, 1.243814993891e-08)
J0_ZERO = (2.404825687408447265625, -1.297126744973e-07)
J1_ZERO = (3.8317060470581054688, -7.685059315e-08)
Y0_ZERO = (0.893576979637145996094, -1.335797847451e-08)


def _beside(x, zero):
    """x less a zero, with all digits."""
    return (x - zero[0]) - zero[1]


def _three_steps(z, term):
    """z + k for the first k with z + k >= 3, at most 3, and the sum of 1 / term(z + j) over j < k, as one fraction."""
    above, below = 0, 1
    for _ in range(3):
        small, factor = z < 3, term(z)
        above, below = where(small, above * factor + below, above), where(small, below * factor, below)
        z = where(small, z + 1, z)
    return z, above / below


@pointwise(node={"": "SpecialZetaBackward0", "x": "SpecialZetaBackward1", "y": "SpecialZetaBackward2"}, method=False)
def zeta(x, y):
    """The Hurwitz zeta function: the sum of (k + y)^-x over k = 0, 1, 2, ..."""
    return p.in_type_of(p.zeta(p.in_double(x), p.in_double(y)), x)


@zeta.derivative
def _(x, y):
    return None, -x * zeta(x + 1, y)


@pointwise(method=False, node="PolygammaBackward0", examples=[(1.0, math.pi**2 / 6), (-0.5, 8.934802200544679)])
def trigamma(x):
    """The derivative of digamma; infinite at 0 and the negative whole numbers."""
    return p.in_type_of(_trigamma(p.in_double(x)), x)


@trigamma.single
def _(x):
    inverse = 1 / x
    square = inverse * inverse
    near = power_sum(single.TRIGAMMA, 2 * where(x < 1, x + 1, x) - 3) + where(x < 1, square, 0)
    far = inverse + square * (0.5 + inverse * power_sum(single.TRIGAMMA_FAR, square))
    positive = where(x < 2, near, far)
    return where(x > 0, positive, p.in_type_of(_trigamma(p.in_double(x)), x))


@trigamma.derivative
def _(x):
    return polygamma_elementwise(x, 2)


def _trigamma(x):
    # As digamma: psi'(x) = (pi / sin(pi x))^2 - psi'(1 - x), and psi'(z) = psi'(z + 1) + 1 / z^2.
    reflected = x < 0
    turned = math.pi / _sin_of_pi(x - p.rint(x))
    z, steps = _three_steps(where(reflected, 1 - x, x), lambda z: z * z)
    inverse = 1 / z
    tail = polynomial_sum(series.TRIGAMMA_FAR, 18 * (inverse * inverse) - 1)
    value = steps + inverse * (1 + inverse * (0.5 + inverse * tail))
    return p.usually(x >= 0, value, where(x == -p.INF, p.INF, where(reflected, turned * turned - value, value)))


@pointwise(method=False, node="PolygammaBackward0")
def polygamma_elementwise(x, n: int):
    """The derivative of order n of digamma; n is at least 2."""
    return p.in_type_of(_polygamma(p.in_double(x), n), x)


def _polygamma(x, n):
    order = p.in_double(n)
    factorial = p.exp(p.lgamma(order + 1))
    return where((n & 1) == 0, -factorial, factorial) * p.zeta(order + 1, x)


@polygamma_elementwise.single
def _(x, n: int):
    value = p.polygamma(cast(n, "f32"), x)
    common = (x > 0) & (x < 1e9) & (n <= 30)  # beyond, the powers leave the range of numbers
    return where(common, where((n & 1) == 0, -value, value), p.in_type_of(_polygamma(p.in_double(x), n), x))


@polygamma_elementwise.derivative
def _(x, n):
    return polygamma_elementwise(x, n + 1)


@pointwise(result="same")
def igamma(x, y):
    """The regularized lower incomplete gamma function with parameter x at y."""
    return p.igamma(x, y)


@igamma.derivative
def _(x, y):
    return None, gamma_density(x, y)


@pointwise(result="same")
def igammac(x, y):
    """The regularized upper incomplete gamma function with parameter x at y."""
    return p.igammac(x, y)


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
    return p.in_type_of(p.exp(size) * _i0e(size, _sum_for(x)), x)


@i0.single
def _(x):
    return _i0_single(p.absolute(x))


@i0.derivative
def _(x):
    return i1(x)


@pointwise(node="SpecialI0EBackward0", method=False, examples=[(0.0, 1.0), (1.0, 0.46575960759364043)])
def i0e(x):
    """exp(-|x|) i0(x)."""
    return p.in_type_of(_i0e(p.absolute(p.in_double(x)), _sum_for(x)), x)


@i0e.single
def _(x):
    size = p.absolute(x)
    return where(size <= 8, p.exp(-size) * power_sum(single.I0, size * size), _i0e_far(size))


@i0e.derivative
def _(x, output):
    return i1e(x) - sgn(x) * output


@pointwise(
    node="SpecialI1Backward0", method=False, examples=[(0.0, 0.0), (1.0, 0.565159103992485), (-1.0, -0.565159103992485)]
)
def i1(x):
    """The modified Bessel function of the first kind of order 1."""
    z = p.in_double(x)
    size = p.absolute(z)
    return p.in_type_of(p.copysign(p.exp(size) * _i1e(size, _sum_for(x)), z), x)


@i1.single
def _(x):
    return _i1_single(x)


@i1.derivative
def _(x, output):
    return where(x == 0, 0.5, i0(x) - output / x)


@pointwise(node="SpecialI1EBackward0", method=False, examples=[(0.0, 0.0), (1.0, 0.2079104153497085)])
def i1e(x):
    """exp(-|x|) i1(x)."""
    z = p.in_double(x)
    return p.in_type_of(p.copysign(_i1e(p.absolute(z), _sum_for(x)), z), x)


@i1e.single
def _(x):
    size = p.absolute(x)
    return where(size <= 8, x * (p.exp(-size) * power_sum(single.I1, x * x)), p.copysign(_i1e_far(size), x))


@i1e.derivative
def _(x, output):
    return where(x == 0, 0.5, i0e(x) - output * sgn(x) - output / x)


def _sum_for(x):
    """How to sum a series for a result of the type of x."""
    return short_sum if x.type == "f32" else chebyshev_sum


def _i0e(size, sum=chebyshev_sum):
    near = sum(series.I0E_NEAR, size * 0.25 - 1)
    return where(size <= 8, near, sum(series.I0E_FAR, 16 / size - 1) / p.sqrt(size))


def _i1e(size, sum=chebyshev_sum):
    near = size * sum(series.I1E_NEAR, size * 0.25 - 1)
    return where(size <= 8, near, sum(series.I1E_FAR, 16 / size - 1) / p.sqrt(size))


def _i0e_far(size):
    return power_sum(single.I0E_FAR, 1 / size) / p.sqrt(size)


def _i1e_far(size):
    return power_sum(single.I1E_FAR, 1 / size) / p.sqrt(size)


def _i0_single(size):
    half = p.exp(0.5 * size)  # exp(size) is too large before its product is
    return where(size <= 8, power_sum(single.I0, size * size), (half * _i0e_far(size)) * half)


def _i1_single(x):
    size = p.absolute(x)
    half = p.exp(0.5 * size)
    return where(size <= 8, x * power_sum(single.I1, x * x), p.copysign((half * _i1e_far(size)) * half, x))


def _k0_single(x, growth):
    square = x * x
    near = power_sum(single.K0_REST, square) - p.log(x) * power_sum(single.I0_SMALL, square)
    far = power_sum(single.K0E_FAR, 2 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth, 1)


def _k1_single(x, growth):
    square = x * x
    near = 1 / x + x * (power_sum(single.K1_REST, square) + p.log(x) * power_sum(single.I1_SMALL, square))
    far = power_sum(single.K1E_FAR, 2 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth, 1)


def _k0(x, growth):
    """K0(x) times 1 (growth False) or exp(x)."""
    near = chebyshev_sum(series.K0_NEAR, x * x * 0.5 - 1) - p.log(0.5 * x) * (p.exp(x) * _i0e(x))
    far = chebyshev_sum(series.K0E_FAR, 4 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth)


def _k1(x, growth):
    near = chebyshev_sum(series.K1_NEAR, x * x * 0.5 - 1) / x + p.log(0.5 * x) * (p.exp(x) * _i1e(x))
    far = chebyshev_sum(series.K1E_FAR, 4 / x - 1) / p.sqrt(x)
    return _second_kind(x, near, far, growth)


def _second_kind(x, near, far, growth, limit=2):
    near, far = (near * p.exp(x), far) if growth else (near, far * p.exp(-x))
    return where(x == 0, p.INF, where(x < 0, p.NAN, where(x <= limit, near, far)))


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, 1.2660658777520084)])
def modified_bessel_i0(x):
    """The modified Bessel function of the first kind of order 0."""
    size = p.absolute(p.in_double(x))
    return p.in_type_of(p.exp(size) * _i0e(size, _sum_for(x)), x)


@modified_bessel_i0.single
def _(x):
    return _i0_single(p.absolute(x))


@pointwise(method=False, examples=[(1.0, 0.565159103992485)])
def modified_bessel_i1(x):
    """The modified Bessel function of the first kind of order 1."""
    z = p.in_double(x)
    size = p.absolute(z)
    return p.in_type_of(p.copysign(p.exp(size) * _i1e(size, _sum_for(x)), z), x)


@modified_bessel_i1.single
def _(x):
    return _i1_single(x)


@pointwise(method=False, examples=[(1.0, 0.42102443824070834), (0.0, float("inf")), (-1.0, float("nan"))])
def modified_bessel_k0(x):
    """The modified Bessel function of the second kind of order 0."""
    return p.in_type_of(_k0(p.in_double(x), growth=False), x)


@modified_bessel_k0.single
def _(x):
    return _k0_single(x, growth=False)


@pointwise(method=False, examples=[(1.0, 0.6019072301972346)])
def modified_bessel_k1(x):
    """The modified Bessel function of the second kind of order 1."""
    return p.in_type_of(_k1(p.in_double(x), growth=False), x)


@modified_bessel_k1.single
def _(x):
    return _k1_single(x, growth=False)


@pointwise(method=False, examples=[(1.0, 1.1444630798068947)])
def scaled_modified_bessel_k0(x):
    """exp(x) times the modified Bessel function of the second kind of order 0."""
    return p.in_type_of(_k0(p.in_double(x), growth=True), x)


@scaled_modified_bessel_k0.single
def _(x):
    return _k0_single(x, growth=True)


@pointwise(method=False, examples=[(1.0, 1.6361534862632582)])
def scaled_modified_bessel_k1(x):
    """exp(x) times the modified Bessel function of the second kind of order 1."""
    return p.in_type_of(_k1(p.in_double(x), growth=True), x)


@scaled_modified_bessel_k1.single
def _(x):
    return _k1_single(x, growth=True)


# Bessel and Airy functions. For double precision the C library has the Bessel functions, to the last digit also near
# their zeros; for single precision they are computed in double by formulas that vectorize.


@pointwise(method=False)
def bessel_j0(x):
    """The Bessel function of the first kind of order 0."""
    return p.bessel_j0(x) if x.type == "f64" else _bessel(x, 0, second_kind=False)


@bessel_j0.single
def _(x):
    size = p.absolute(x)
    near = _beside(size, J0_ZERO) * (size + J0_ZERO[0]) * power_sum(single.J0, 0.125 * (x * x) - 1)
    return where(size <= 4, near, _bessel(x, 0, second_kind=False))


@pointwise(method=False)
def bessel_j1(x):
    """The Bessel function of the first kind of order 1."""
    return p.bessel_j1(x) if x.type == "f64" else _bessel(x, 1, second_kind=False)


@bessel_j1.single
def _(x):
    size = p.absolute(x)
    near = x * (_beside(size, J1_ZERO) * (size + J1_ZERO[0]) * power_sum(single.J1, 0.125 * (x * x) - 1))
    return where(size <= 4, near, _bessel(x, 1, second_kind=False))


@pointwise(method=False)
def bessel_y0(x):
    """The Bessel function of the second kind of order 0."""
    return p.bessel_y0(x) if x.type == "f64" else _bessel(x, 0, second_kind=True)


@bessel_y0.single
def _(x):
    square, beside = x * x, _beside(x, Y0_ZERO)
    logarithm = where(x < 0.5, p.log(x) - math.log(sum(Y0_ZERO)), p.log1p(beside * (1 / Y0_ZERO[0])))
    first = (2 / math.pi) * logarithm * power_sum(single.Y0_FIRST, square)
    near = first + beside * (x + Y0_ZERO[0]) * power_sum(single.Y0_REST, square)
    return where((x > 0) & (x <= 2), near, _bessel(x, 0, second_kind=True))


@pointwise(method=False)
def bessel_y1(x):
    """The Bessel function of the second kind of order 1."""
    return p.bessel_y1(x) if x.type == "f64" else _bessel(x, 1, second_kind=True)


@bessel_y1.single
def _(x):
    square = x * x
    first = (2 / math.pi) * (p.log(x) * (x * power_sum(single.Y1_FIRST, square)) - 1 / x)
    near = first + x * power_sum(single.Y1_REST, square)
    return where((x > 0) & (x <= 1.5), near, _bessel(x, 1, second_kind=True))


def _bessel(x, order, second_kind):
    z = p.in_double(x)
    size = p.absolute(z)
    near, far = _bessel_near(z, size, order, second_kind), _bessel_far(size, order, second_kind)
    far = where(size == p.INF, 0, far)
    if second_kind:
        far = where(z < 0, p.NAN, far)
    elif order:
        far = where(z < 0, -far, far)
    return p.usually(size <= 8, p.in_type_of(near, x), p.in_type_of(far, x))


def _bessel_near(z, size, order, second_kind):
    t = size * size * (1 / 32) - 1
    first = z * polynomial_sum(series.J1_NEAR, t) if order else polynomial_sum(series.J0_NEAR, t)
    if not second_kind:
        return first
    rest = z * polynomial_sum(series.Y1_NEAR, t) if order else polynomial_sum(series.Y0_NEAR, t)
    product = p.log(z) * first
    pole = product - 1 / z if order else product
    value = rest + (2 / math.pi) * pole
    return where(z == 0, -p.INF, value)


def _bessel_far(size, order, second_kind):
    """J or Y by the real and imaginary part of sqrt(2 / (pi x)) exp(i angle) (P + i Q), for positive x."""
    t = 128 / (size * size) - 1
    real = polynomial_sum(series.HANKEL1_P if order else series.HANKEL0_P, t)
    imaginary = polynomial_sum(series.HANKEL1_Q if order else series.HANKEL0_Q, t) / size
    # sqrt(2) times the cosine and the sine of x - pi / 4, or of x - 3 pi / 4.
    s, c = p.sin(size), p.cos(size)
    cosine, sine = (s - c, -(s + c)) if order else (s + c, s - c)
    value = real * sine + imaginary * cosine if second_kind else real * cosine - imaginary * sine
    return value / p.sqrt(math.pi * size)


@pointwise(method=False, examples=[(0.0, 1.0), (1.0, math.sin(1))])
def spherical_bessel_j0(x):
    """sin(x) / x, and 1 for 0."""
    z = p.in_double(x)
    return p.in_type_of(where(p.absolute(z) == p.INF, 0, where(z == 0, 1, p.sin(z) / z)), x)


@spherical_bessel_j0.single
def _(x):
    return where(p.absolute(x) == p.INF, 0, where(x == 0, 1, p.sin(x) / x))


@pointwise(
    method=False, examples=[(0.0, 0.3550280538878172), (2.0, 0.034924130423274379), (-9.0, -0.02213372154734140)]
)
def airy_ai(x):
    """The Airy function Ai."""
    return p.in_type_of(_airy_ai(p.in_double(x)), x)


@airy_ai.single
def _(x):
    near = p.exp(-x) * power_sum(single.AIRY, x)
    return where(p.absolute(x) <= 1, near, p.in_type_of(_airy_ai(p.in_double(x)), x))


def _airy_ai(x):
    size = p.absolute(x)
    root = p.sqrt(size)
    z = 2 / 3 * (size * root)
    fourth_root = p.sqrt(root)
    near = chebyshev_sum(series.AIRY_NEAR, (x + 2) / 3)
    decay = p.exp(-z) * chebyshev_sum(series.AIRY_DECAY, (4 / 3) / z - 1) / fourth_root
    t = (1000 / 9) / (z * z) - 1
    angle = where(x < 0, z, 0)
    s, c = p.sin(angle), p.cos(angle)  # sqrt(2) sin(z + pi / 4) is s + c, sqrt(2) cos(z + pi / 4) is c - s
    wave = (s + c) * chebyshev_sum(series.AIRY_P, t) - (c - s) * (chebyshev_sum(series.AIRY_Q, t) / z)
    far = wave * (1 / math.sqrt(2 * math.pi)) / fourth_root
    return where(x > 103.9, 0, where(x > 1, decay, where(x < -5, far, near)))
