"""Logical operations (on the truth of a value) and operations on bits."""

from .definition import pointwise


@pointwise(types="any", result="bool", examples=[(2.0, 0.0, False), (1, 3, True)])
def logical_and(x, y):
    """True where both x and y are not zero."""
    return (x != 0) & (y != 0)


@pointwise(types="any", result="bool", examples=[(2.0, 0.0, True), (0, 0, False)])
def logical_or(x, y):
    """True where x or y is not zero."""
    return (x != 0) | (y != 0)


@pointwise(types="any", result="bool", examples=[(2.0, 0.0, True), (1, 3, False)])
def logical_xor(x, y):
    """True where exactly one of x and y is not zero."""
    return (x != 0) ^ (y != 0)


@pointwise(types="any", result="bool", examples=[(2.0, False), (0, True)])
def logical_not(x):
    """True where x is zero."""
    return x == 0


@pointwise(types="bool integer", examples=[(12, 10, 8), (True, False, False)])
def bitwise_and(x, y):
    """The bits that both x and y have."""
    return x & y


@pointwise(types="bool integer", examples=[(12, 10, 14)])
def bitwise_or(x, y):
    """The bits that x or y has."""
    return x | y


@pointwise(types="bool integer", examples=[(12, 10, 6)])
def bitwise_xor(x, y):
    """The bits that exactly one of x and y has."""
    return x ^ y


@pointwise(types="bool integer", examples=[(12, -13), (True, False)], exact="out")
def bitwise_not(x):
    """All bits inverted."""
    return ~x


@pointwise(types="integer", examples=[(3, 2, 12), (1, 64, 0)])
def bitwise_left_shift(x, y):
    """x moved left by y bits; 0 if y is negative or at least 64."""
    return x << y


@pointwise(types="integer", examples=[(12, 2, 3), (-8, 1, -4), (-8, 100, -1)])
def bitwise_right_shift(x, y):
    """x moved right by y bits, keeping its sign; only the sign is left if y is negative or at least 64."""
    return x >> y
