"""SymInt, SymFloat and SymBool, of which there are none: sizes are known here. The sym_ functions work on plain
numbers.
"""

import builtins
import math

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt",
    "sym_sum",
]  # fmt: skip


class _NoSymbol:
    def __init__(self, node=None):
        raise TypeError(f"{type(self).__name__}: there are no symbolic numbers; sizes are plain ints")


class SymInt(_NoSymbol):
    """The class of symbolic sizes, for isinstance checks: nothing is one."""


class SymFloat(_NoSymbol):
    """The class of symbolic floats, for isinstance checks: nothing is one."""


class SymBool(_NoSymbol):
    """The class of symbolic conditions, for isinstance checks: nothing is one."""


def sym_not(a):
    """not a.

    >>> cresset.sym_not(True)
    False
    """
    return not a


def sym_float(a):
    """float(a).

    >>> cresset.sym_float(2)
    2.0
    """
    return builtins.float(a)


def sym_int(a):
    """int(a).

    >>> cresset.sym_int(2.7)
    2
    """
    return builtins.int(a)


def sym_max(a, b):
    """The larger number, a float if one of them is.

    >>> cresset.sym_max(1, 0.5)
    1.0
    """
    return _promoted(builtins.max(a, b), a, b)


def sym_min(a, b):
    """The smaller number, a float if one of them is.

    >>> cresset.sym_min(1, 2.5)
    1.0
    """
    return _promoted(builtins.min(a, b), a, b)


def _promoted(value, *numbers):
    return builtins.float(value) if any(isinstance(n, builtins.float) for n in numbers) else value


def sym_ite(b, t, f):
    """`t` if `b`, else `f`; both of one type.

    >>> cresset.sym_ite(True, 1, 2)
    1
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError(f"sym_ite: expected a bool and two values of one type, got {b!r}, {t!r} and {f!r}")
    return t if b else f


def sym_sum(*args):
    """The sum of numbers, given one by one or as one list.

    >>> cresset.sym_sum([1, 2, 3])
    6
    """
    return builtins.sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_sqrt(a):
    """The square root.

    >>> cresset.sym_sqrt(4)
    2.0
    """
    return math.sqrt(a)
