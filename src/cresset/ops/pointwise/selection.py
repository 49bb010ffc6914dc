"""Choosing one of several values: where, maximum and minimum, clamping.

In maximum, minimum and clamp a nan wins; in fmax and fmin it loses. Where both operands of maximum are equal, each gets
half of the gradient; a clamped value passes its gradient on at the bounds themselves.
"""

from . import primitives as p
from .comparison import isnan
from .definition import Highest, Lowest, pointwise


@pointwise(
    types="any",
    method=False,
    examples=[(True, 1.0, 2.0, 1.0), (False, 1.0, 2.0, 2.0)],
    requires="a condition",
    exact="out",
)
def where(condition: bool, x, y):
    """x where the condition holds, else y."""
    return p.select(condition, x, y)


@where.gradient
def _(grad, condition):
    return None, where(condition, grad, 0), where(condition, 0, grad)


@pointwise(types="bool real", inplace=False, examples=[(1.0, 2.0, 2.0), (3, 2, 3)])
def maximum(x, y):
    """The larger of x and y; nan if either is."""
    return where(isnan(y), y, where(x < y, y, x))


@maximum.on("bool")
def _(x, y):
    return x | y


@maximum.derivative
def _(x, y):
    return where(x == y, 0.5, where(x < y, 0, 1)), where(x == y, 0.5, where(x > y, 0, 1))


@pointwise(types="bool real", inplace=False, examples=[(1.0, 2.0, 1.0), (3, 2, 2)])
def minimum(x, y):
    """The smaller of x and y; nan if either is."""
    return where(isnan(y), y, where(x > y, y, x))


@minimum.on("bool")
def _(x, y):
    return x & y


@minimum.derivative
def _(x, y):
    return where(x == y, 0.5, where(x > y, 0, 1)), where(x == y, 0.5, where(x < y, 0, 1))


@pointwise(types="bool real", inplace=False, examples=[(1.0, float("nan"), 1.0), (1.0, 2.0, 2.0)])
def fmax(x, y):
    """The larger of x and y; nan only if both are."""
    return where((x >= y) | isnan(y), x, y)


@fmax.on("bool")
def _(x, y):
    return x | y


@fmax.derivative
def _(x, y):
    first = (x >= y) | isnan(y)
    return where(first, 1, 0), where(first, 0, 1)


@pointwise(types="bool real", inplace=False, examples=[(1.0, float("nan"), 1.0), (1.0, 2.0, 1.0)])
def fmin(x, y):
    """The smaller of x and y; nan only if both are."""
    return where((x <= y) | isnan(y), x, y)


@fmin.on("bool")
def _(x, y):
    return x & y


@fmin.derivative
def _(x, y):
    first = (x <= y) | isnan(y)
    return where(first, 1, 0), where(first, 0, 1)


@pointwise(
    node={"": "ClampMinBackward1", "min": "ClampMinBackward0"},
    types="bool real",
    examples=[(-1.0, 0.0, 0.0), (2, 0, 2)],
    exact="out_of_one",
)
def clamp_min(x, min):
    """x, but at least `min`."""
    return maximum(x, min)


@clamp_min.derivative
def _(x, min):
    return where(x >= min, 1, 0), where(x < min, 1, 0)


@pointwise(
    node={"": "ClampMaxBackward1", "max": "ClampMaxBackward0"},
    types="bool real",
    examples=[(2.0, 1.0, 1.0), (2, 5, 2)],
    exact="out_of_one",
)
def clamp_max(x, max):
    """x, but at most `max`."""
    return minimum(x, max)


@clamp_max.derivative
def _(x, max):
    return where(x <= max, 1, 0), where(x > max, 1, 0)


@pointwise(
    node={"": "ClampBackward0", "min max": "ClampBackward1"},
    types="real",
    examples=[(-1.0, 0.0, 1.0, 0.0), (0.5, 0.0, 1.0, 0.5), (0.5, 2.0, 1.0, 1.0)],
    requires="a bound",
    exact="out_of_one",
)
def clamp(x, min: Lowest, max: Highest):
    """x, but at least `min` and at most `max`; `max` if min > max. A bound may be None."""
    return minimum(maximum(x, min), max)


@clamp.derivative
def _(x, min, max):
    return (
        where((x >= min) & (x <= max), 1, 0),
        where((min < max) & (x < min), 1, 0),
        where((x > max) | (max < min), 1, 0),
    )
