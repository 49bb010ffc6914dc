"""The functions that every code printer knows by name: what formulas are built from, beside + - * / and comparisons.

A primitive called with an Expression gives a node; called with numbers it gives the number that IEEE arithmetic gives
(log(0) is -inf, not an exception). On the CPU it is the function of that name in native/base/vector_math.h,
complex_math.h, special_math.h or polynomials.h; on CUDA in cresset/cuda/kernels/math.cuh, complex.cuh or special.cuh.
"""

import cmath
import math

from .expression import (
    COMPLEX_OF,
    LOOK,
    REAL_OF,
    Expression,
    as_expression,
    cast,
    choose,
    common,
    is_complex,
    is_integral,
    literal,
    promote,
)

INF, NAN = math.inf, math.nan

registry = {}  # name -> Primitive


class Primitive:
    """A named function with a type rule (`result`: the argument type -> the result type) and a meaning for numbers."""

    def __init__(self, name, number, result):
        self.name, self.number, self.result = name, number, result
        registry[name] = self

    def __call__(self, *args):
        if not any(isinstance(arg, Expression) for arg in args):
            if any(hasattr(arg.__class__, "__torch_function__") for arg in args):
                return self.of_tensors(args)
            return self.number(*args)
        args = common(*args)
        type = None
        for arg in args:
            type = promote(type, arg.type)
        args = [cast(arg, type) for arg in args]
        return Expression(self.name, args, self.result(type))

    def of_tensors(self, args):
        """What the operator of the primitive's name gives: where a formula is read as operations on tensors."""
        try:
            operator = tensor_operator(self.name)
        except (KeyError, TypeError) as error:
            raise TypeError(
                f"{self.name}: expected expressions or numbers, got tensors, and there is no operator"
            ) from error
        return operator(*args)


tensor_operator = None  # set by `set_tensor_operator` of definition.py


def same(type):
    return type


def real(type):
    return REAL_OF.get(type, type)


def boolean(type):
    return "b8"


def ieee(function, complex_function=None, poles=None):
    """A function of the math module without exceptions: at a pole the value in `poles`, else nan; too large is inf."""

    if poles is None:
        poles = {}

    def value(*args):
        if any(isinstance(arg, complex) for arg in args):
            try:
                return complex_function(*args)
            except (ValueError, OverflowError, ZeroDivisionError):
                return complex(NAN, NAN)
        if args[0] in poles:
            return poles[args[0]]
        try:
            return function(*args)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return value


def _erf_inverse(x, rest):
    """A guess to three digits, then Halley's method."""
    if not rest > 0:
        return INF if rest == 0 else NAN
    logarithm = math.log(rest * (1 + x))
    middle = 2 / (math.pi * 0.147) + 0.5 * logarithm
    y = math.sqrt(math.sqrt(middle * middle - logarithm / 0.147) - middle)
    for _ in range(3):
        error = (math.erf(y) - x if x < 0.5 else rest - math.erfc(y)) / (2 / math.sqrt(math.pi) * math.exp(-(y * y)))
        y -= error / (1 + y * error)
    return y


def _signed_overflow(function):
    return lambda x: math.copysign(ieee(function)(abs(x)), x)


def _rounding(function):
    return lambda x: function(x) if math.isfinite(x) else x


def _power(x, y):
    if isinstance(x, complex) or isinstance(y, complex):
        return x**y if x or not y else 0j
    if isinstance(x, int) and isinstance(y, int):
        if y >= 0:
            return x**y
        return (1 if y % 2 == 0 else x) if x in (1, -1) else 0
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF
    except ValueError:
        return INF if x == 0 else NAN


def _log1p_complex(z):
    return cmath.log(1 + z)


exp = Primitive("exp", ieee(math.exp, cmath.exp), same)
exp2 = Primitive("exp2", ieee(lambda x: math.pow(2.0, x), lambda z: 2**z), same)
expm1 = Primitive("expm1", ieee(math.expm1, lambda z: cmath.exp(z) - 1), same)
log = Primitive("log", ieee(math.log, cmath.log, {0: -INF}), same)
log2 = Primitive("log2", ieee(math.log2, lambda z: cmath.log(z) / math.log(2), {0: -INF}), same)
log10 = Primitive("log10", ieee(math.log10, cmath.log10, {0: -INF}), same)
log1p = Primitive("log1p", ieee(math.log1p, _log1p_complex, {-1: -INF}), same)
sqrt = Primitive("sqrt", ieee(math.sqrt, cmath.sqrt), same)
sin = Primitive("sin", ieee(math.sin, cmath.sin), same)
cos = Primitive("cos", ieee(math.cos, cmath.cos), same)
tan = Primitive("tan", ieee(math.tan, cmath.tan), same)
asin = Primitive("asin", ieee(math.asin, cmath.asin), same)
acos = Primitive("acos", ieee(math.acos, cmath.acos), same)
atan = Primitive("atan", ieee(math.atan, cmath.atan), same)
atan2 = Primitive("atan2", ieee(math.atan2), same)
sinh = Primitive("sinh", lambda x: cmath.sinh(x) if isinstance(x, complex) else _signed_overflow(math.sinh)(x), same)
cosh = Primitive("cosh", ieee(math.cosh, cmath.cosh), same)
tanh = Primitive("tanh", ieee(math.tanh, cmath.tanh), same)
asinh = Primitive("asinh", ieee(math.asinh, cmath.asinh), same)
acosh = Primitive("acosh", ieee(math.acosh, cmath.acosh), same)
atanh = Primitive("atanh", ieee(math.atanh, cmath.atanh, {1: INF, -1: -INF}), same)
erf = Primitive("erf", ieee(math.erf), same)
erfc = Primitive("erfc", ieee(math.erfc), same)
erf_inverse = Primitive("erf_inverse", _erf_inverse, same)  # of x and 1 - x, for 0 <= x < 1
lgamma = Primitive("lgamma", lambda x: INF if x <= 0 and x == math.floor(x) else ieee(math.lgamma)(x), same)
hypot = Primitive("hypot", math.hypot, same)
pow = Primitive("pow", _power, same)
fmod = Primitive("fmod", lambda x, y: NAN if y == 0 else ieee(math.fmod)(x, y), same)
floor = Primitive("floor", _rounding(math.floor), same)
ceil = Primitive("ceil", _rounding(math.ceil), same)
trunc = Primitive("trunc", _rounding(math.trunc), same)
rint = Primitive("rint", _rounding(round), same)
copysign = Primitive("copysign", math.copysign, same)
nextafter = Primitive("nextafter", math.nextafter, same)
signbit = Primitive("signbit", lambda x: math.copysign(1, x) < 0, boolean)
# Integers: quotient towards zero and its remainder, 0 where the divisor is 0; greatest common divisor.
quotient = Primitive("quotient", lambda x, y: int(x / y) if y else 0, same)
modulo = Primitive("modulo", lambda x, y: int(math.fmod(x, y)) if y else 0, same)
gcd = Primitive("gcd", math.gcd, same)
# Functions that only CUDA has, of single precision.
erfcx = Primitive("erfcx", None, same)
log_ndtr = Primitive("log_ndtr", None, same)
normal_quantile = Primitive("normal_quantile", None, same)
polygamma = Primitive("polygamma", None, same)  # of the order and a positive number, without its sign
# Orthogonal polynomials of a degree from 2 to 7; the first argument of the Chebyshev ones is that of degree 1.
low_chebyshev = Primitive("low_chebyshev", None, same)
low_hermite_h = Primitive("low_hermite_h", None, same)
low_hermite_he = Primitive("low_hermite_he", None, same)
low_laguerre_l = Primitive("low_laguerre_l", None, same)
low_legendre_p = Primitive("low_legendre_p", None, same)
# Functions that only compiled code has: they have loops whose length depends on the value.
zeta = Primitive("zeta", None, same)
igamma = Primitive("igamma", None, same)
igammac = Primitive("igammac", None, same)
gamma_weight = Primitive("gamma_weight", None, same)
bessel_j0 = Primitive("bessel_j0", None, same)
bessel_j1 = Primitive("bessel_j1", None, same)
bessel_y0 = Primitive("bessel_y0", None, same)
bessel_y1 = Primitive("bessel_y1", None, same)
chebyshev_t = Primitive("chebyshev_t", None, same)
chebyshev_u = Primitive("chebyshev_u", None, same)
chebyshev_v = Primitive("chebyshev_v", None, same)
chebyshev_w = Primitive("chebyshev_w", None, same)
hermite_h = Primitive("hermite_h", None, same)
hermite_he = Primitive("hermite_he", None, same)
laguerre_l = Primitive("laguerre_l", None, same)
legendre_p = Primitive("legendre_p", None, same)
# Complex numbers in parts.
_absolute = Primitive("abs", abs, real)
_real_part = Primitive("real", lambda z: z.real, real)
_imaginary_part = Primitive("imag", lambda z: z.imag, real)
_conjugate = Primitive("conj", lambda z: z.conjugate(), same)
_build = Primitive("complex", complex, lambda type: COMPLEX_OF[type])


def absolute(x):
    """|x|; the modulus of a complex number."""
    return x if isinstance(x, Expression) and x.type in ("b8", "u64") else _absolute(x)


def real_part(z):
    return _real_part(z) if not isinstance(z, Expression) or is_complex(z.type) else z


def imaginary_part(z):
    return _imaginary_part(z) if not isinstance(z, Expression) or is_complex(z.type) else literal(0, z.type)


def conjugate(z):
    if isinstance(z, Expression) and z.op == "div" and z.args[0].op == "literal":
        return z.args[0] / conjugate(
            z.args[1]
        )  # conj(1 / z) is 1 / conj(z), and then one division does for grad / conj(z)
    return _conjugate(z) if not isinstance(z, Expression) or is_complex(z.type) else z


def make_complex(re, im):
    return _build(re, im)


def is_nan(x):
    """True where x is not a number; never so for integers, and then it costs nothing."""
    x = as_expression(x)
    if x.op == "literal":
        return literal(x.value != x.value, "b8")
    return literal(False, "b8") if is_integral(x.type) else x != x


def select(condition, a, b):
    return choose(condition, a, b)


def usually(condition, usual, otherwise):
    """select(condition, usual, otherwise), of which the second is much work: a loop that finds it nowhere leaves it
    out.
    """
    return choose(condition, usual, otherwise, LOOK)


def in_double(x):
    """x with the accuracy of a double: for series whose rounding errors would show in single precision."""
    return cast(x, "c128" if isinstance(x, Expression) and is_complex(x.type) else "f64")


def in_type_of(value, x):
    return cast(value, x.type)


def _divide(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return a / b if b else complex(NAN, NAN)
    if b:
        return a / b
    return NAN if a == 0 or a != a else math.copysign(INF, a) * math.copysign(1, b)


def _wrap(value, type):
    """Integers stay in 64 bits, as in the machine."""
    if type == "i64":
        return (int(value) + 2**63) % 2**64 - 2**63
    if type == "u64":
        return int(value) % 2**64
    return value


def convert(value, type):
    """A Python number as a value of `type`; an infinite one becomes the end of the integers."""
    if type == "b8":
        return bool(value)
    if is_integral(type):
        return int(value) if math.isfinite(value) else 2**63 - 1 if value > 0 else -(2**63)
    return complex(value) if is_complex(type) else float(value)


_numbers = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": _divide, "neg": lambda a: -a,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0, "shr": lambda a, b: a >> (b if 0 <= b < 64 else 63),
}  # fmt: skip


def evaluate(expression, values):
    """The number an expression stands for; `values` has the variables by name."""
    known = {}

    def value_of(node):
        if id(node) not in known:
            known[id(node)] = compute(node)
        return known[id(node)]

    def compute(node):
        if node.op == "literal":
            return node.value
        if node.op == "variable":
            return values[node.value]
        if node.op == "where":
            condition, a, b = node.args
            return value_of(a if value_of(condition) else b)
        args = [value_of(arg) for arg in node.args]
        if node.op == "cast":
            return convert(args[0], node.type)
        if node.op == "not":
            return not args[0] if node.type == "b8" else ~args[0]
        function = _numbers.get(node.op) or registry[node.op].number
        if function is None:
            raise NotImplementedError(f"{node.op} has no value for Python numbers; only compiled code has it")
        return _wrap(function(*args), node.type)

    return value_of(expression)
