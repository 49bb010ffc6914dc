"""Angles: circular and hyperbolic functions and their inverses."""

import math

from . import primitives as p
from .definition import is_real, pointwise
from .exponential import rsqrt
from .selection import where


@pointwise(types="float complex", examples=[(0.0, 0.0), (math.pi / 2, 1.0)], onnx="Sin")
def sin(x):
    """The sine of x, in radians."""
    return p.sin(x)


@sin.derivative
def _(x):
    return cos(x)


@pointwise(types="float complex", examples=[(0.0, 1.0), (math.pi, -1.0)], onnx="Cos")
def cos(x):
    """The cosine of x, in radians."""
    return p.cos(x)


@cos.derivative
def _(x):
    return -sin(x)


@pointwise(types="float complex", examples=[(math.pi / 4, 1.0)], autocast="float32", onnx="Tan")
def tan(x):
    """The tangent of x, in radians."""
    return p.tan(x)


@tan.derivative
def _(output):
    return 1 + output * output


@pointwise(types="float complex", examples=[(1.0, math.pi / 2), (2.0, float("nan"))], autocast="float32", onnx="Asin")
def asin(x):
    """The angle between -pi/2 and pi/2 whose sine is x."""
    return p.asin(x)


@asin.derivative
def _(x):
    return rsqrt(1 - x * x)


@pointwise(types="float complex", examples=[(1.0, 0.0), (-1.0, math.pi)], autocast="float32", onnx="Acos")
def acos(x):
    """The angle between 0 and pi whose cosine is x."""
    return p.acos(x)


@acos.derivative
def _(x):
    return -rsqrt(1 - x * x)


@pointwise(types="float complex", examples=[(1.0, math.pi / 4)], onnx="Atan")
def atan(x):
    """The angle between -pi/2 and pi/2 whose tangent is x."""
    return p.atan(x)


@atan.derivative
def _(x):
    return 1 / (x * x + 1)


@pointwise(examples=[(1.0, 1.0, math.pi / 4), (1.0, -1.0, 3 * math.pi / 4)], autocast="promote")
def atan2(x, y):
    """The angle of the point with height x and abscissa y, between -pi and pi."""
    return p.atan2(x, y)


@atan2.gradient
def _(grad, x, y):
    square = x * x + y * y
    return grad * where(square == 0, 0, y / square), grad * where(square == 0, 0, -x / square)


@pointwise(types="float complex", examples=[(0.0, 0.0), (1.0, math.sinh(1))], autocast="float32", onnx="Sinh")
def sinh(x):
    """The hyperbolic sine (exp(x) - exp(-x)) / 2."""
    return p.sinh(x)


@sinh.derivative
def _(x):
    return cosh(x)


@pointwise(types="float complex", examples=[(0.0, 1.0), (1.0, math.cosh(1))], autocast="float32", onnx="Cosh")
def cosh(x):
    """The hyperbolic cosine (exp(x) + exp(-x)) / 2."""
    return p.cosh(x)


@cosh.derivative
def _(x):
    return sinh(x)


@pointwise(types="float complex", examples=[(0.0, 0.0), (1.0, math.tanh(1)), (100.0, 1.0)], onnx="Tanh")
def tanh(x):
    """The hyperbolic tangent: from -1 to 1."""
    return p.tanh(x)


@tanh.derivative
def _(output):
    return 1 - output * output


@pointwise(types="float complex", examples=[(1.0, math.asinh(1))], onnx="Asinh")
def asinh(x):
    """The inverse of sinh."""
    return p.asinh(x)


@asinh.derivative
def _(x):
    return rsqrt(x * x + 1)


@pointwise(types="float complex", examples=[(1.0, 0.0), (2.0, math.acosh(2)), (0.5, float("nan"))], onnx="Acosh")
def acosh(x):
    """The inverse of cosh for x >= 1."""
    return p.acosh(x)


@acosh.derivative
def _(x):
    # In the complex plane the two roots keep to the branch of acosh; their product does not.
    return rsqrt(x * x - 1) if is_real(x) else rsqrt(x + 1) * rsqrt(x - 1)


@pointwise(types="float complex", examples=[(0.5, math.atanh(0.5)), (1.0, float("inf"))], onnx="Atanh")
def atanh(x):
    """The inverse of tanh."""
    return p.atanh(x)


@atanh.derivative
def _(x):
    return 1 / (1 - x * x)


@pointwise(types="float complex", examples=[(0.0, 1.0), (0.5, 2 / math.pi)])
def sinc(x):
    """sin(pi x) / (pi x), and 1 for 0."""
    z = math.pi * x
    return where(x == 0, 1, p.sin(z) / z)


@sinc.derivative
def _(x):
    z = math.pi * x
    return where(z * x == 0, 0, (z * cos(z) - sin(z)) / (z * x))
