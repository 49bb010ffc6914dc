"""SymInt and SymBool: numbers and conditions that are formulas of symbols, made by
`fx.experimental.symbolic_shapes.ShapeEnv`. Tensors here have sizes that are plain ints, so no tensor gives one; there
are no symbolic floats. The sym_ functions take plain numbers and symbolic ones.
"""

import builtins
import math

from .._native import overridable

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt",
    "sym_sum",
]  # fmt: skip


class SymBool:
    """A condition on symbols. To ask for its value (`bool`, `if`) decides it by the symbols' examples, and the
    environment notes that as a guard; without examples it is an error.

    Args:
        node: a SymNode.
    """

    def __init__(self, node):
        self.node = node

    def __bool__(self):
        return self.node.decide()

    def __and__(self, other):
        return self.node.both(other, "And")

    def __or__(self, other):
        return self.node.both(other, "Or")

    __rand__, __ror__ = __and__, __or__

    def __sym_not__(self):
        return self.node.negated()

    def __sym_demand__(self):
        """What torch._check does: whether it holds; where that cannot be said yet, it is taken for true from here
        on."""
        return self.node.shape_env.guard_or_defer_runtime_assert(self.node.expr)

    def __repr__(self):
        return str(self.node.expr)


class SymFloat:
    """The class of symbolic floats, for isinstance checks: nothing is one."""

    def __init__(self, node=None):
        raise TypeError("SymFloat: there are no symbolic floats; numbers are plain floats")


class SymInt:
    """An integer that is a formula of symbols.

    Args:
        node: a SymNode.

    >>> from cresset.fx.experimental.symbolic_shapes import ShapeEnv
    >>> n = ShapeEnv().create_unbacked_symint()
    >>> 2 * (n + 1) - n, n // 2, n == 3
    (u0 + 2, (u0//2), Eq(u0, 3))
    """

    def __init__(self, node):
        self.node = node

    def __int__(self):
        return self.node.number()

    __index__ = __int__

    def __bool__(self):
        return builtins.bool(self != 0)

    def __float__(self):
        return builtins.float(self.node.number())

    def __neg__(self):
        return self.node.arithmetic("mul", -1)

    def __hash__(self):
        return hash(self.node.expr)

    def __repr__(self):
        return str(self.node.expr)


def _operations():
    def forward(name, run):
        def compute(self, other):
            return getattr(self.node, run)(name, other)

        return compute

    def backward(name):
        def compute(self, other):
            return self.node.arithmetic(name, other, swapped=True)

        return compute

    for name in ("add", "sub", "mul", "floordiv", "mod"):
        setattr(SymInt, f"__{name}__", forward(name, "arithmetic"))
        setattr(SymInt, f"__r{name}__", backward(name))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(SymInt, f"__{name}__", forward(name, "comparison"))


_operations()


def sym_not(a):
    """not a.

    >>> cresset.sym_not(True)
    False
    """
    return a.__sym_not__() if isinstance(a, SymBool) else not a


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
    return a if isinstance(a, SymInt) else builtins.int(a)


def sym_max(a, b):
    """The larger number, a float if one of them is.

    >>> cresset.sym_max(1, 0.5)
    1.0
    """
    symbolic = _symbolic(a, b)
    return symbolic[0].node.arithmetic("max", symbolic[1]) if symbolic else _promoted(builtins.max(a, b), a, b)


def sym_min(a, b):
    """The smaller number, a float if one of them is.

    >>> cresset.sym_min(1, 2.5)
    1.0
    """
    symbolic = _symbolic(a, b)
    return symbolic[0].node.arithmetic("min", symbolic[1]) if symbolic else _promoted(builtins.min(a, b), a, b)


def _symbolic(a, b):
    """The two with the symbolic one first; None if neither is."""
    return (a, b) if isinstance(a, SymInt) else (b, a) if isinstance(b, SymInt) else None


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


# Other types may answer for these, as for functions of tensors.
sym_not, sym_float, sym_int, sym_max, sym_min, sym_ite, sym_sum, sym_sqrt = (
    overridable(function, "torch", False)
    for function in (sym_not, sym_float, sym_int, sym_max, sym_min, sym_ite, sym_sum, sym_sqrt)
)
