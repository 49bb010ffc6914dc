"""Numbers: Python's arithmetic and math, under TorchScript's names."""

import cmath
import math

from ..failures import raise_exception


def _either(name):
    """math's function, or cmath's for a complex number."""
    real, of_complex = getattr(math, name), getattr(cmath, name, None)
    return lambda a: of_complex(a) if isinstance(a, complex) else real(a)


def divide(a, b):
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def floor_divide(a, b):
    if b == 0 and not isinstance(a, float) and not isinstance(b, float):
        raise RuntimeError("division by 0")
    return a // b


def round_to_zero(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def power(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return complex(a) ** complex(b)
    return math.pow(a, b)


def remainder(a, b):
    if b == 0 and not isinstance(a, float) and not isinstance(b, float):
        raise RuntimeError("division by 0")
    return a % b


def rounded(a):
    return float(round(a)) if isinstance(a, float) and math.isfinite(a) else a


def range_length(low, high, step):
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _largest(a, b=None):
    return max(a) if b is None else max(a, b)


def _smallest(a, b=None):
    return min(a) if b is None else min(a, b)


def to_int(a):
    if isinstance(a, float) and not math.isfinite(a):
        raise RuntimeError(f"Int: {a} is no integer")
    return int(a)


def to_complex(a, b=None):
    return complex(a) if b is None else complex(a, b)


def frexp(a):
    return math.frexp(a)


def unwrap_optional(value):
    """The value of an Optional that must have one."""
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


builtins = {
    **{f"aten::{name}": _either(name) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh",
        "exp", "log10", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{f"aten::{name}": getattr(math, name) for name in ("atan2", "copysign", "degrees", "radians", "erf", "erfc",
        "expm1", "fabs", "factorial", "fmod", "gamma", "gcd", "hypot", "ldexp", "lgamma", "log1p", "modf", "isnan",
        "isinf", "isfinite", "ceil", "floor")},
    "aten::log": lambda a, b=None: (cmath.log(a) if isinstance(a,
        complex) else math.log(a)) if b is None else math.log(a, b),
    "aten::div": divide, "aten::floordiv": floor_divide, "aten::__round_to_zero_floordiv": round_to_zero,
    "aten::remainder": remainder,
    "aten::pow": power, "aten::divmod": divmod, "aten::frexp": frexp, "aten::round": rounded, "aten::abs": abs,
    "prim::abs": abs, "aten::mathremainder": math.remainder,
    "aten::angle": lambda a: cmath.phase(a), "aten::Int": to_int, "aten::Float": float, "aten::Bool": bool,
    "aten::Complex": to_complex,
    "aten::IntImplicit": int, "aten::FloatImplicit": float, "aten::ComplexImplicit": complex,
    "aten::ScalarImplicit": lambda a: a,
    "prim::max": _largest, "prim::min": _smallest, "aten::max": _largest, "aten::min": _smallest,
    "aten::__range_length": range_length,
    "aten::__derive_index": lambda index, start, step: start + index * step, "aten::bin": bin, "aten::hex": hex,
    "aten::oct": oct, "aten::chr": chr, "aten::ord": ord,
    "aten::bitwise_not": lambda a: ~a, "aten::real": lambda a: complex(a).real, "aten::imag": lambda a: complex(a).imag,
    "aten::conj": lambda a: complex(a).conjugate(),
    "aten::bitwise_and": lambda a, b: a & b, "aten::bitwise_or": lambda a, b: a | b, "aten::bitwise_xor": lambda a,
    b: a ^ b, "aten::logical_not": lambda a: not a,
    "prim::RaiseException": raise_exception, "prim::EnumName": lambda member: member.name,
    "prim::EnumValue": lambda member: member.value,
    "prim::IfThenElse": lambda condition, a, b: a if condition else b, "prim::rangelist": lambda n: list(range(n)),
    "aten::_unwrap_optional": unwrap_optional, "aten::log2": math.log2, "aten::hash": hash,
}  # fmt: skip
