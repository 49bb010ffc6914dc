"""Exponentials, logarithms, powers and roots."""

import functools
import math

from . import primitives as p
from .arithmetic import imaginary_part, real_part
from .comparison import isnan
from .definition import Optional, conj, is_real, pointwise
from .selection import maximum, where

LN2, LN10 = math.log(2), math.log(10)


@pointwise(types="float complex", examples=[(0.0, 1.0), (1.0, math.e)], autocast="float32", onnx="Exp")
def exp(x):
    """e to the power x."""
    return p.exp(x)


@exp.derivative
def _(output):
    return output


@pointwise(types="float complex", examples=[(3.0, 8.0)])
def exp2(x):
    """2 to the power x."""
    return p.exp2(x)


@exp2.derivative
def _(output):
    return output * LN2


@pointwise(types="float complex", examples=[(0.0, 0.0), (1e-20, 1e-20)], autocast="float32")
def expm1(x):
    """exp(x) - 1, accurate for small x."""
    return p.expm1(x)


@expm1.derivative
def _(output):
    return output + 1


@pointwise(
    types="float complex", examples=[(1.0, 0.0), (math.e, 1.0), (0.0, float("-inf"))], autocast="float32", onnx="Log"
)
def log(x):
    """The natural logarithm."""
    return p.log(x)


@log.derivative
def _(x):
    return 1 / x


@pointwise(types="float complex", examples=[(8.0, 3.0)], autocast="float32")
def log2(x):
    """The logarithm to base 2."""
    return p.log2(x)


@log2.derivative
def _(x):
    return 1 / (x * LN2)


@pointwise(types="float complex", examples=[(1000.0, 3.0)], autocast="float32")
def log10(x):
    """The logarithm to base 10."""
    return p.log10(x)


@log10.derivative
def _(x):
    return 1 / (x * LN10)


@pointwise(types="float complex", examples=[(0.0, 0.0), (1e-20, 1e-20)], autocast="float32")
def log1p(x):
    """log(1 + x), accurate for small x."""
    return p.log1p(x)


@log1p.derivative
def _(x):
    return 1 / (x + 1)


@pointwise(
    types="float complex", result="same", inplace=False, examples=[(0.0, 0.0, LN2), (1000.0, 1000.0, 1000.0 + LN2)]
)
def logaddexp(x, y):
    """log(exp(x) + exp(y)), without overflow on the way."""
    equal_infinities = (x == y) & (p.absolute(x) == p.INF)
    return where(equal_infinities, x, maximum(x, y) + p.log1p(p.exp(-p.absolute(x - y))))


@logaddexp.on("complex")
def _(x, y):
    swap = p.real_part(x) < p.real_part(y)
    high, low = where(swap, y, x), where(swap, x, y)
    equal_infinities = (x == y) & (p.absolute(p.real_part(x)) == p.INF)
    return where(equal_infinities, x, high + p.log1p(p.exp(low - high)))


@logaddexp.derivative
def _(x, y):
    return 1 / (1 + exp(y - x)), 1 / (1 + exp(x - y))


@pointwise(result="same", inplace=False, examples=[(0.0, 0.0, 1.0), (1000.0, 1000.0, 1001.0)])
def logaddexp2(x, y):
    """log2(2^x + 2^y), without overflow on the way."""
    equal_infinities = (x == y) & (p.absolute(x) == p.INF)
    return where(equal_infinities, x, maximum(x, y) + p.log1p(p.exp2(-p.absolute(x - y))) * (1 / LN2))


@logaddexp2.derivative
def _(x, y):
    return 1 / (1 + exp2(y - x)), 1 / (1 + exp2(x - y))


@pointwise(types="float complex", examples=[(0.0, 0.5), (2.0, 0.8807970779778823)], onnx="Sigmoid")
def sigmoid(x):
    """1 / (1 + exp(-x)): from 0 to 1."""
    return 1 / (1 + p.exp(-x))


@sigmoid.derivative
def _(output):
    return output * (1 - output)


@pointwise(examples=[(0.5, 0.0), (0.0, 0.25, -math.log(3))])
def logit(x, eps: Optional = None):
    """log(x / (1 - x)), the inverse of sigmoid; with `eps`, x is first clamped to [eps, 1 - eps]."""
    clamped = where(x < eps, eps, where(x > 1 - eps, 1 - eps, x))
    z = where(p.is_nan(eps), x, clamped)
    return p.log(z / (1 - z))


@logit.gradient
def _(grad, x, eps):
    # Without eps the logit of what is no probability is nan, and so is its derivative.
    low, high, outside = where(isnan(eps), 0, eps), where(isnan(eps), 1, 1 - eps), where(isnan(eps), p.NAN, 0)
    return where((x >= low) & (x <= high), grad / (x * (1 - x)), outside)


@pointwise(
    node={"": "PowBackward1", "x": "PowBackward2", "exponent": "PowBackward0"},
    types="number",
    examples=[(2.0, 3.0, 8.0), (2, 10, 1024), (0.0, 0.0, 1.0), (3, -1, 0)],
    requires="a natural power",
    autocast="float32",
)
def pow(x, exponent):
    """x to the power `exponent`; a whole number to a negative whole power is 0 unless it is 1 or -1."""
    return p.pow(x, exponent)


@pow.on("complex")
def _(x, exponent):
    return where(exponent == 0, 1, p.pow(x, exponent))


@pow.gradient
def _(grad, x, exponent, output):
    by_base = where(exponent == 0, 0, grad * conj(exponent * pow(x, exponent - 1)))
    # 0 to a positive power does not change with the power, though log(0) is infinite.
    if is_real(exponent):
        constant = (x == 0) & (exponent >= 0)
    else:
        constant = (x == 0) & (real_part(exponent) >= 0) & (imaginary_part(exponent) == 0)
    return by_base, where(constant, 0, grad * conj(output * log(x)))


@pointwise(types="float complex", examples=[(3.0, 2.0, 12.0)])
def ldexp(x, y):
    """x * 2^y."""
    return x * p.exp2(y)


@ldexp.derivative
def _(y, output):
    return exp2(y), output * LN2


@pointwise(types="float complex", examples=[(9.0, 3.0)], onnx="Sqrt")
def sqrt(x):
    """The square root; nan for negative real numbers."""
    return p.sqrt(x)


@sqrt.derivative
def _(output):
    return 1 / (2 * output)


@pointwise(types="float complex", examples=[(4.0, 0.5)], autocast="float32")
def rsqrt(x):
    """1 / sqrt(x)."""
    return 1 / p.sqrt(x)


@rsqrt.derivative
def _(output):
    return -0.5 * (output * output * output)


# Powers that are computed by simpler functions (`simple_power` in native/ops/arithmetic.cpp). A power keeps its base
# for backward and not its result, as these functions do, so that the result may be changed in place.
_simple_power = functools.partial(pointwise, node="PowBackward0", method=False, inplace=True, autocast="float32")


@_simple_power(examples=[(9.0, 3.0)], onnx="Sqrt")
def power_half(x):
    """The square root: what `x ** 0.5` is computed by."""
    return p.sqrt(x)


@power_half.derivative
def _(x):
    return 0.5 * power_minus_half(x)


@_simple_power(examples=[(4.0, 0.5)])
def power_minus_half(x):
    """1 / sqrt(x): what `x ** -0.5` is computed by."""
    return 1 / p.sqrt(x)


@power_minus_half.derivative
def _(x):
    return -0.5 * pow(x, -1.5)


@_simple_power(examples=[(4.0, 0.25)], onnx="Reciprocal")
def power_minus_one(x):
    """1 / x: what `x ** -1` is computed by."""
    return 1 / x


@power_minus_one.derivative
def _(x):
    return -power_minus_two(x)


@_simple_power(examples=[(4.0, 0.0625)])
def power_minus_two(x):
    """1 / (x * x): what `x ** -2` is computed by."""
    return 1 / (x * x)


@power_minus_two.derivative
def _(x):
    return -2 * pow(x, -3)


@pointwise(
    node={"": "XlogyBackward0", "x": "XlogyBackward1", "y": "XlogyBackward2"},
    examples=[(0.0, 0.0, 0.0), (2.0, math.e, 2.0)],
)
def xlogy(x, y):
    """x * log(y), and 0 where x is 0 unless y is nan."""
    return where((x == 0) & ~isnan(y), 0, x * p.log(y))


@xlogy.gradient
def _(grad, x, y):
    return where((x == 0) & (y <= 0), 0, xlogy(grad, y)), grad * x / y


@pointwise(
    node={"": "SpecialXlog1PyBackward0", "x": "SpecialXlog1PyBackward1", "y": "SpecialXlog1PyBackward2"},
    method=False,
    examples=[(0.0, -1.0, 0.0), (2.0, math.e - 1, 2.0)],
)
def xlog1py(x, y):
    """x * log1p(y), and 0 where x is 0 unless y is nan."""
    return where((x == 0) & ~isnan(y), 0, x * p.log1p(y))


@xlog1py.gradient
def _(grad, x, y):
    return where((x == 0) & (y <= -1), 0, xlog1py(grad, y)), grad * x / (y + 1)


@pointwise(node="SpecialEntrBackward0", method=False, examples=[(0.0, 0.0), (1.0, 0.0), (-1.0, float("-inf"))])
def entr(x):
    """-x * log(x): the terms of an entropy; 0 for 0 and -inf for negative x."""
    return where(p.is_nan(x), x, where(x > 0, -x * p.log(x), where(x == 0, 0, -p.INF)))


@entr.derivative
def _(x):
    return -(log(x) + 1)
