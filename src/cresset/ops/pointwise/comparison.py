"""Comparisons and tests of single values. All give bool."""

from . import primitives as p
from .definition import pointwise
from .expression import is_complex, is_integral, literal


@pointwise(types="any", result="bool", examples=[(1.0, 1.0, True), (1.0, 2.0, False)])
def eq(x, y):
    """x == y, elementwise."""
    return x == y


@pointwise(types="any", result="bool", examples=[(1.0, 2.0, True), (float("nan"), float("nan"), True)])
def ne(x, y):
    """x != y, elementwise."""
    return x != y


@pointwise(types="bool real", result="bool", examples=[(1.0, 2.0, True), (2, 2, False)])
def lt(x, y):
    """x < y, elementwise."""
    return x < y


@pointwise(types="bool real", result="bool", examples=[(2, 2, True)])
def le(x, y):
    """x <= y, elementwise."""
    return x <= y


@pointwise(types="bool real", result="bool", examples=[(2.0, 1.0, True), (2, 2, False)])
def gt(x, y):
    """x > y, elementwise."""
    return x > y


@pointwise(types="bool real", result="bool", examples=[(2, 2, True)])
def ge(x, y):
    """x >= y, elementwise."""
    return x >= y


@pointwise(
    types="any",
    result="bool",
    inplace=False,
    examples=[(float("nan"), True), (float("inf"), False), (3, False)],
    onnx="IsNaN",
)
def isnan(x):
    """True where x is not a number; for a complex x, where one of its parts is not."""
    return p.is_nan(p.real_part(x)) | p.is_nan(p.imaginary_part(x))


@pointwise(
    types="any", result="bool", inplace=False, examples=[(float("-inf"), True), (1.0, False), (float("nan"), False)]
)
def isinf(x):
    """True where x is infinite; for a complex x, where one of its parts is."""
    return _is_infinite(p.real_part(x)) | _is_infinite(p.imaginary_part(x))


@pointwise(
    types="any", result="bool", inplace=False, examples=[(1.0, True), (float("inf"), False), (float("nan"), False)]
)
def isfinite(x):
    """True where x is neither infinite nor nan."""
    return _is_finite(p.real_part(x)) & _is_finite(p.imaginary_part(x))


@pointwise(
    types="bool real",
    result="bool",
    inplace=False,
    examples=[(float("inf"), True), (float("-inf"), False)],
    exact="out",
)
def isposinf(x):
    """True where x is positive infinity."""
    return literal(False, "b8") if is_integral(x.type) else x == p.INF


@pointwise(
    types="bool real",
    result="bool",
    inplace=False,
    examples=[(float("inf"), False), (float("-inf"), True)],
    exact="out",
)
def isneginf(x):
    """True where x is negative infinity."""
    return literal(False, "b8") if is_integral(x.type) else x == -p.INF


@pointwise(types="any", result="bool", inplace=False, examples=[(1 + 0j, True), (1j, False), (2.0, True)])
def isreal(x):
    """True where the imaginary part is zero."""
    return p.imaginary_part(x) == 0 if is_complex(x.type) else literal(True, "b8")


@pointwise(
    types="bool real", result="bool", inplace=False, examples=[(-0.0, True), (0.0, False), (-3, True)], exact="out"
)
def signbit(x):
    """True where the sign of x is minus, also for -0.0."""
    if x.type in ("b8", "u64"):
        return literal(False, "b8")
    return x < 0 if is_integral(x.type) else p.signbit(x)


def _is_infinite(x):
    return literal(False, "b8") if is_integral(x.type) or x.op == "literal" else p.absolute(x) == p.INF


def _is_finite(x):
    return literal(True, "b8") if is_integral(x.type) or x.op == "literal" else p.absolute(x) < p.INF
