"""Symbolic values: what a formula becomes when it is called with no numbers at hand.

An Expression is a node of a graph: an operation, its arguments and the type it computes in. Equal expressions are one
object, so a subexpression that a formula writes twice is computed once. Python numbers take the type of what they meet.
"""

import weakref

# The types a loop computes in, from narrow to wide; the names are those of `Compute` in native/dispatch/pointwise.h.
TYPES = ("b8", "i64", "u64", "f32", "f64", "c64", "c128")
# A number that is known before the loop: computed in double, and then in the type of the tensor it meets, as a Python
# number is. Only updates (update.py) have such variables.
NUMBER = "number"
REAL_OF = {"c64": "f32", "c128": "f64"}
COMPLEX_OF = {"f32": "c64", "f64": "c128"}

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOOK = "look"  # the value of a choice before which a loop should look whether it is to be made


def is_integral(type):
    return type in ("b8", "i64", "u64")


def is_complex(type):
    return type in REAL_OF


def promote(a, b):
    """The type in which values of types `a` and `b` meet; None is a number that has no type yet."""
    if a is None or b is None or a == b:
        return a or b
    if NUMBER in (a, b):
        return b if a == NUMBER else a
    if {a, b} == {"f64", "c64"}:
        return "c128"
    return max(a, b, key=TYPES.index)


class Expression:
    """A node: `op` applied to `args`, computed in `type`. `value` is a literal's number, a variable's name, or LOOK."""

    __slots__ = ("op", "args", "type", "value", "__weakref__")
    _known = weakref.WeakValueDictionary()

    def __new__(cls, op, args=(), type=None, value=None):
        key = (op, tuple(map(id, args)), type, repr(value))
        known = cls._known.get(key)
        if known is None:
            known = super().__new__(cls)
            known.op, known.args, known.type, known.value = op, tuple(args), type, value
            cls._known[key] = known
        return known

    def __repr__(self):
        if self.op in ("literal", "variable"):
            return str(self.value)
        return f"{self.op}({', '.join(map(repr, self.args))})"

    def __bool__(self):
        raise TypeError(f"a formula cannot branch on the value of {self!r}; use where(condition, a, b)")

    __hash__ = object.__hash__

    def __add__(self, other):
        return binary("add", self, other)

    def __radd__(self, other):
        return binary("add", other, self)

    def __sub__(self, other):
        return binary("sub", self, other)

    def __rsub__(self, other):
        return binary("sub", other, self)

    def __mul__(self, other):
        return binary("mul", self, other)

    def __rmul__(self, other):
        return binary("mul", other, self)

    def __truediv__(self, other):
        return binary("div", self, other)

    def __rtruediv__(self, other):
        return binary("div", other, self)

    def __pow__(self, exponent):
        """A small whole power as products: x ** 3 is x * x * x."""
        if not (isinstance(exponent, int) and 1 <= exponent <= 8):
            raise TypeError(
                f"x ** {exponent!r} in a formula: only whole exponents from 1 to 8; call pow(x, y) for others"
            )
        half = self ** (exponent // 2) if exponent > 1 else None
        square = half * half if half is not None else None
        return self if square is None else square * self if exponent % 2 else square

    def __neg__(self):
        return Expression("neg", (self,), self.type)

    def __lt__(self, other):
        return binary("lt", self, other)

    def __le__(self, other):
        return binary("le", self, other)

    def __gt__(self, other):
        return binary("gt", self, other)

    def __ge__(self, other):
        return binary("ge", self, other)

    def __eq__(self, other):
        return binary("eq", self, other)

    def __ne__(self, other):
        return binary("ne", self, other)

    def __and__(self, other):
        return binary("and", self, other)

    def __or__(self, other):
        return binary("or", self, other)

    def __xor__(self, other):
        return binary("xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other):
        return binary("shl", self, other)

    def __rshift__(self, other):
        return binary("shr", self, other)

    def __invert__(self):
        if self.op == "literal" and self.type == "b8":
            return literal(not self.value, "b8")
        return Expression("not", (self,), self.type)


def variable(name, type):
    return Expression("variable", (), type, name)


def literal(value, type=None):
    """A number; with a type it must be representable there, so that no formula silently truncates 0.5 to 0."""
    if type == "b8":
        value = bool(value)
    elif type in ("i64", "u64"):
        if value != int(value):
            raise TypeError(f"a formula meets the number {value} where it computes in {type}")
        value = int(value)
    elif type in ("f32", "f64", NUMBER):
        value = float(value)
    elif is_complex(type):
        value = complex(value)
    return Expression("literal", (), type, value)


def is_literal(expression, value):
    return expression.op == "literal" and expression.value == value


def as_expression(value):
    return value if isinstance(value, Expression) else literal(value)


def cast(value, type):
    """`value` in `type`. A number without a type takes it, and so does an expression made of such numbers."""
    value = as_expression(value)
    if value.type == type:
        return value
    if value.op == "literal" and (value.type is None or not isinstance(value.value, complex)):
        return literal(value.value, type)
    if value.op == "where" and value.value == LOOK:  # stays outermost, where a loop finds it
        condition, a, b = value.args
        return choose(condition, cast(a, type), cast(b, type), LOOK)
    if value.type is None:
        return Expression(value.op, [a if a.type is not None else cast(a, type) for a in value.args], type, value.value)
    return Expression("cast", (value,), type)


def common(*values):
    """The values in the type in which they meet.

    A real value that meets a complex one stays real: real times complex is cheaper and has no spurious nan.
    """
    values = [as_expression(value) for value in values]
    type = None
    for value in values:
        type = promote(type, value.type)
    if type in COMPLEX_OF and any(map(_holds_complex_number, values)):
        type = COMPLEX_OF[type]
    if type is None:
        return values
    real = REAL_OF.get(type)
    return [
        value
        if value.type in (type, real) and value.type is not None
        else cast(value, real if real and not _holds_complex_number(value) and not is_complex(value.type) else type)
        for value in values
    ]


def _holds_complex_number(value):
    return value.op == "literal" and isinstance(value.value, complex)


def binary(op, a, b):
    """The node for an infix operation, in the common type of its operands."""
    if not all(isinstance(value, (Expression, bool, int, float, complex)) for value in (a, b)):
        return NotImplemented
    a, b = common(a, b)
    type = promote(a.type, b.type)
    if any(map(_holds_complex_number, (a, b))) and type in COMPLEX_OF:
        type = COMPLEX_OF[type]
    if op in COMPARISONS:
        return Expression(op, (a, b), "b8")
    if op in ("and", "or", "xor", "shl", "shr") and not is_integral(type):
        raise TypeError(f"a formula asks for bits of {type}: {a!r} {op} {b!r}")
    if type == "b8":
        op = {"add": "or", "mul": "and"}.get(op, op)
        if op not in ("and", "or", "xor"):
            raise TypeError(f"a formula asks for {op} of two booleans")
        for known, other in ((a, b), (b, a)):
            if known.op == "literal" and op != "xor":
                # True & x and False | x are x; False & x is False, True | x is True.
                return other if known.value == (op == "and") else known
    # Multiplication and division by one change nothing, not even the sign of a zero.
    if op == "mul" and is_literal(a, 1) and type == b.type:
        return b
    if op in ("mul", "div") and is_literal(b, 1) and type == a.type:
        return a
    return Expression(op, (a, b), type)


def choose(condition, a, b, value=None):
    """`a` where the condition holds, else `b`. Both are computed: there are no branches in a loop."""
    condition = as_expression(condition)
    if condition.op == "literal":
        return as_expression(a if condition.value else b)
    a, b = common(a, b)
    if a.type != b.type:
        type = promote(a.type, b.type)
        a, b = cast(a, type), cast(b, type)
    return a if a is b else Expression("where", (condition, a, b), a.type, value)


def scale(grad, factor):
    """grad * factor; where the factor is known to be 0 or 1 there is no product, so that 0 * inf is not nan."""
    if not isinstance(factor, Expression):
        factor = literal(factor)
    if factor.op == "literal" and factor.value in (0, 1):
        return grad if factor.value else literal(0, grad.type)
    if factor.op == "where" and any(a.op in ("literal", "where") for a in factor.args[1:]):
        condition, a, b = factor.args
        return choose(condition, scale(grad, a), scale(grad, b))
    if factor.op == "div" and is_literal(factor.args[0], 1):
        return grad / factor.args[1]
    return grad * factor


def leaves(expression):
    """The names of the variables that an expression reads."""
    names, seen, pending = set(), set(), [expression]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            if node.op == "variable":
                names.add(node.value)
            pending.extend(node.args)
    return names
