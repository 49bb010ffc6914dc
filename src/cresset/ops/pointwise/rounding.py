"""Rounding to whole numbers, and what is left over."""

from . import primitives as p
from .definition import pointwise
from .expression import is_integral
from .selection import where


@pointwise(types="real", examples=[(1.7, 1.0), (-1.2, -2.0), (3, 3)], onnx="Floor", exact="out")
def floor(x):
    """The largest whole number that is not above x."""
    return x if is_integral(x.type) else p.floor(x)


@pointwise(types="real", examples=[(1.2, 2.0), (-1.7, -1.0)], onnx="Ceil", exact="out")
def ceil(x):
    """The smallest whole number that is not below x."""
    return x if is_integral(x.type) else p.ceil(x)


@pointwise(types="real", examples=[(1.7, 1.0), (-1.7, -1.0)], exact="out")
def trunc(x):
    """x without its fraction: rounded towards zero."""
    return x if is_integral(x.type) else p.trunc(x)


@pointwise(types="real", examples=[(2.5, 2.0), (3.5, 4.0), (1.2345, 2, 1.23)], exact="out")
def round(x, *, decimals: int = 0):
    """x rounded to `decimals` digits after the point (before it, if negative); halves go to the even neighbor."""
    ten = p.pow(p.in_type_of(10, x), p.in_type_of(p.absolute(decimals), x))
    return where(decimals == 0, p.rint(x), where(decimals > 0, p.rint(x * ten) / ten, p.rint(x / ten) * ten))


@round.on("integer")
def _(x):
    return x


@pointwise(result="same", examples=[(1.75, 0.75), (-1.75, -0.75)], exact="out")
def frac(x):
    """The fraction of x, with the sign of x."""
    return x - trunc(x)


@frac.derivative
def _():
    return 1


for _rounding in (floor, ceil, trunc, round):
    _rounding.derivative(lambda: 0)
