"""Sums, products, quotients, and simple functions made of them."""

import math

from . import primitives as p
from .comparison import isfinite
from .definition import Divisor, Highest, Lowest, Number, conj, is_real, pointwise
from .expression import is_integral
from .selection import where


@pointwise(types="any", examples=[(1.0, 2.0, 3.0), (1, 2, 3, 7), (True, True, True)], requires="a fitting factor")
def add(x, y, *, alpha=1):
    """x + alpha * y; on bool, the logical or."""
    return x + alpha * y


@add.derivative
def _(alpha):
    return 1, alpha


@pointwise(
    types="number",
    node={"": "SubBackward0", "x": "RsubBackward1"},
    examples=[(1.0, 2.0, -1.0)],
    requires="a fitting factor",
    refuses_bool="Subtraction, the `-` operator, with a bool tensor is not supported. "
    "Use the `^` or `logical_xor()` operator instead, or `~` to invert a mask",
)
def sub(x, y, *, alpha=1):
    """x - alpha * y."""
    return x - alpha * y


@sub.derivative
def _(alpha):
    return 1, -alpha


@pointwise(types="any", examples=[(2.0, 3.0, 6.0), (True, False, False)], exact="y")
def mul(x, y):
    """x * y; on bool, the logical and."""
    return x * y


@mul.derivative
def _(x, y):
    return y, x


@pointwise(
    node={"": "DivBackward0", "x": "MulBackward0"},  # 2 / x: PyTorch multiplies 2 by the reciprocal
    types="float complex",
    examples=[(1.0, 4.0, 0.25), (1, 2, 0.5)],
    exact="y",
)
def div(x, y):
    """x / y; whole numbers give a fraction."""
    return x / y


@div.gradient
def _(grad, x, y):
    return grad / conj(y), -grad * conj(x / y / y)


@pointwise(node="DivBackward2", types="real", examples=[(7.0, 2.0, 3.0), (-7, 2, -4), (7.0, -2.0, -4.0)], exact="y")
def div_floor(x, y: Divisor):
    """x / y rounded down, such that x = y * div_floor(x, y) + remainder(x, y)."""
    rest = p.fmod(x, y)
    whole = (x - rest) / y
    whole = where((rest != 0) & ((y < 0) != (rest < 0)), whole - 1, whole)
    down = p.floor(whole)
    nearest = where(whole - down > 0.5, down + 1, down)
    return where(y == 0, x / y, where(whole == 0, p.copysign(0, x / y), nearest))


@div_floor.on("integer")
def _(x, y):
    whole = p.quotient(x, y)
    if x.type == "u64":
        return whole
    # The rest by a product: another division would take as long as the first.
    return where((x - whole * y != 0) & ((x < 0) != (y < 0)), whole - 1, whole)


@pointwise(node="DivBackward2", types="real", examples=[(7.0, 2.0, 3.0), (-7, 2, -3)], exact="y")
def div_trunc(x, y: Divisor):
    """x / y rounded towards zero."""
    return p.trunc(x / y)


@div_trunc.on("integer")
def _(x, y):
    return p.quotient(x, y)


for _division in (div_floor, div_trunc):
    _division.derivative(lambda: (0, 0))


@pointwise(types="real", examples=[(7.0, 2.0, 3.0), (-7, 2, -4), (7.0, -2.0, -4.0)], exact="y")
def floor_divide(x, y: Divisor):
    """x / y rounded down: what Python's // gives. It has no derivative; that of div(rounding_mode="floor") is zero."""
    return div_floor(x, y)


@floor_divide.derivative
def _():
    return None, None  # there is none: backward says so


@pointwise(
    node={"": "RemainderBackward1", "y": "RemainderBackward0"},
    types="real",
    examples=[(7.0, 3.0, 1.0), (-7, 3, 2), (7.0, -3.0, -2.0)],
)
def remainder(x, y: Divisor):
    """What div_floor leaves over: a value with the sign of y, as Python's %."""
    rest = p.fmod(x, y)
    return where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@remainder.on("integer")
def _(x, y):
    rest = p.modulo(x, y)
    if x.type == "u64":
        return rest
    return where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@remainder.derivative
def _(x, y):
    return 1, -div_floor(x, y)


@pointwise(
    node={"": "FmodBackward1", "y": "FmodBackward0"},
    types="real",
    examples=[(7.0, 3.0, 1.0), (-7, 3, -1), (7.0, -3.0, 1.0)],
)
def fmod(x, y: Divisor):
    """What div_trunc leaves over: a value with the sign of x, as C's %."""
    return p.fmod(x, y)


@fmod.on("integer")
def _(x, y):
    return p.modulo(x, y)


@fmod.derivative
def _(x, y):
    return 1, -div_trunc(x, y)


@pointwise(
    types="number",
    examples=[(2.0, -2.0), (3, -3)],
    refuses_bool="Negation, the `-` operator, on a bool tensor is not supported. "
    "Use the `~` or `logical_not()` operator to invert a mask",
    onnx="Neg",
    exact="out",
)
def neg(x):
    """-x."""
    return -x


@neg.derivative
def _():
    return -1


@pointwise(types="float complex", examples=[(4.0, 0.25)], autocast="float32", onnx="Reciprocal")
def reciprocal(x):
    """1 / x."""
    return 1 / x


@reciprocal.derivative
def _(output):
    return -output * output


@pointwise(types="number", node="PowBackward0", examples=[(3.0, 9.0), (-2, 4)], autocast="float32")
def square(x: Number):
    """x * x."""
    return x * x


@square.derivative
def _(x):
    return 2 * x


@pointwise(
    types="real",
    node="PowBackward0",
    method=False,
    inplace=True,
    examples=[(3.0, 27.0), (-2, -8)],
    autocast="float32",
)
def cube(x: Number):
    """x * x * x: what `x ** 3` is computed by."""
    return x * x * x


@cube.derivative
def _(x):
    return 3 * (x * x)


@pointwise(
    types="number",
    result="real",
    examples=[(-2.0, 2.0), (3 + 4j, 5.0), (-3, 3)],
    requires="real in place",
    onnx="Abs",
    exact="out",
)
def abs(x):
    """The distance of x from zero."""
    return p.absolute(x)


@abs.gradient
def _(grad, x):
    return grad * sgn(x)


@pointwise(types="bool real", examples=[(-2.5, -1.0), (0.0, 0.0), (7, 1)], onnx="Sign", exact="out")
def sign(x):
    """-1, 0 or 1, as x is negative, zero or positive; 0 for nan."""
    if x.type in ("b8", "u64"):
        return p.in_type_of(x != 0, x)
    return p.in_type_of(where(x > 0, 1, where(x < 0, -1, 0)), x)


@sign.derivative
def _():
    return 0


@pointwise(types="any", examples=[(-2.5, -1.0), (3 + 4j, 0.6 + 0.8j)], exact="out")
def sgn(x):
    """x / |x|, and 0 for 0: the sign of a real number, the direction of a complex one."""
    return sign(x)


@sgn.on("complex")
def _(x):
    size = p.absolute(x)
    return where(size == 0, 0, x / size)


@sgn.gradient
def _(grad, x, output):
    if is_real(output):
        return 0
    # Along the direction of x the sign does not change: that part of the gradient is taken out.
    size = abs(x)
    return where(size == 0, 0, (grad - output * real_part(grad * conj(output))) / size)


@pointwise(node={"": "CopysignBackward0", "y": "CopysignBackward1"}, examples=[(2.0, -0.0, -2.0), (-3.0, 1.0, 3.0)])
def copysign(x, y):
    """The size of x with the sign of y."""
    return p.copysign(x, y)


@copysign.gradient
def _(grad, x, output):
    return grad * where(x == 0, 0, output / x), 0


@pointwise(result="same", examples=[(3.0, 4.0, 5.0)])
def hypot(x, y):
    """sqrt(x^2 + y^2), without overflow on the way."""
    return p.hypot(x, y)


@hypot.derivative
def _(x, y, output):
    return x / output, y / output


@pointwise(
    types="float complex",
    result="same",
    examples=[(0.0, 10.0, 0.25, 2.5)],
    node={"": "LerpBackward1", "weight": "LerpBackward0"},
    requires="one dtype, floating",
    exact="x end weight",
)
def lerp(x, end, weight):
    """x + weight * (end - x), computed from the nearer end."""
    return where(p.absolute(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


@lerp.derivative
def _(x, end, weight):
    return 1 - weight, weight, end - x


@pointwise(types="number", examples=[(1.0, 2.0, 3.0, 7.0), (1.0, 2.0, 3.0, 0.5, 4.0)], autocast="promote")
def addcmul(x, tensor1, tensor2, *, value=1):
    """x + value * tensor1 * tensor2."""
    return x + value * tensor1 * tensor2


@addcmul.derivative
def _(tensor1, tensor2, value):
    return 1, value * tensor2, value * tensor1


@pointwise(
    types="float complex", result="same", examples=[(1.0, 3.0, 2.0, 2.5)], requires="a fraction", autocast="promote"
)
def addcdiv(x, tensor1, tensor2, *, value=1):
    """x + value * tensor1 / tensor2."""
    return x + value * tensor1 / tensor2


@addcdiv.derivative
def _(tensor1, tensor2, value):
    return 1, value / tensor2, -(value * tensor1 / (tensor2 * tensor2))


@pointwise(result="same", examples=[(0.0, 1.0, 5e-324)])
def nextafter(x, y):
    """The next representable number after x towards y."""
    return p.nextafter(x, y)


@nextafter.derivative
def _(x, y):
    # Where both are equal, the result is y: none of it comes from x, and PyTorch gives y none either.
    return where(x != y, 1, 0), 0


@pointwise(
    types="bool real", examples=[(-1.5, 0.5, 0.0), (0.0, 0.5, 0.5), (2.0, 0.5, 1.0)], requires="one dtype", exact="out"
)
def heaviside(x, values):
    """0 where x < 0, `values` where x is 0, 1 where x > 0."""
    return p.in_type_of(where(x == 0, values, p.in_type_of(x > 0, x)), x)


@heaviside.derivative
def _():
    return None, None  # there is none: backward says so


@pointwise(types="integer", examples=[(12, 18, 6), (0, 0, 0), (-4, 6, 2)])
def gcd(x, y):
    """The greatest common divisor; never negative."""
    return p.gcd(x, y)


@pointwise(types="integer", examples=[(4, 6, 12), (0, 5, 0)])
def lcm(x, y):
    """The least common multiple; never negative."""
    return p.absolute(p.quotient(x, p.gcd(x, y)) * y)


@pointwise(types="any", examples=[(float("nan"), 0.0), (float("inf"), 0.0, 5.0, 5.0), (1.5, 1.5)], exact="out")
def nan_to_num(x, nan: float = 0.0, posinf: Highest = None, neginf: Lowest = None):
    """x with nan and infinities replaced; without a replacement an infinity becomes the largest number of its sign."""
    return x if is_integral(x.type) else _finite(x, nan, posinf, neginf)


@nan_to_num.on("complex")
def _(x, nan, posinf, neginf):
    return p.make_complex(
        _finite(p.real_part(x), nan, posinf, neginf), _finite(p.imaginary_part(x), nan, posinf, neginf)
    )


@nan_to_num.derivative
def _(x):
    return where(isfinite(x), 1, 0)


def _finite(x, nan, posinf, neginf):
    return where(p.is_nan(x), nan, where(x == p.INF, posinf, where(x == -p.INF, neginf, x)))


@pointwise(examples=[(180.0, math.pi)])
def deg2rad(x):
    """Degrees to radians."""
    return x * (math.pi / 180)


@deg2rad.derivative
def _():
    return math.pi / 180


@pointwise(examples=[(math.pi, 180.0)])
def rad2deg(x):
    """Radians to degrees."""
    return x * (180 / math.pi)


@rad2deg.derivative
def _():
    return 180 / math.pi


# Complex numbers in parts. `real_part` and `imaginary_part` copy; the views Tensor.real and Tensor.imag are elsewhere.


@pointwise(types="complex", result="real", method=False, examples=[(3 + 4j, 3.0)])
def real_part(x):
    """The real part of x, as a new tensor."""
    return p.real_part(x)


@real_part.gradient
def _(grad):
    return grad


@pointwise(types="complex", result="real", method=False, examples=[(3 + 4j, 4.0)])
def imaginary_part(x):
    """The imaginary part of x, as a new tensor."""
    return p.imaginary_part(x)


@imaginary_part.gradient
def _(grad):
    return grad * 1j


@pointwise(types="any", examples=[(3 + 4j, 3 - 4j), (2.0, 2.0)], exact="out")
def conj_physical(x):
    """The complex conjugate, written out; a real x as it is."""
    return p.conjugate(x)


@conj_physical.gradient
def _(grad):
    return conj(grad)


@pointwise(
    types="float complex", result="real", inplace=False, examples=[(1j, math.pi / 2), (-2.0, math.pi), (2.0, 0.0)]
)
def angle(x):
    """The angle of x in the complex plane: pi for negative real numbers, 0 for the others."""
    return where(p.is_nan(x), x, where(x < 0, math.pi, 0))


@angle.on("complex")
def _(x):
    return p.atan2(p.imaginary_part(x), p.real_part(x))


@angle.gradient
def _(grad, x):
    if is_real(x):
        return 0
    size = abs(x)
    return where(size == 0, 0, x * 1j * (grad / (size * size)))
