"""Special functions: the error function and its relatives, gamma functions, Bessel functions."""

import math

from . import primitives as p
from .definition import pointwise
from .exponential import exp
from .selection import where

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


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
