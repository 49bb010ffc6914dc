"""SymNode: a formula or condition together with the environment that its symbols belong to."""

from ...tensors.symbolic import SymBool, SymInt
from .formulas import Condition, Formula

__all__ = ["SymNode"]


class SymNode:
    """What a SymInt or SymBool holds.

    Args:
        expr: a Formula or a Condition.
        shape_env: the environment of its symbols.
    """

    def __init__(self, expr, shape_env):
        self._expr, self.shape_env = expr, shape_env

    @property
    def expr(self):
        """The formula, with the numbers of the symbols that are known by now."""
        return self.shape_env.replace(self._expr)

    @property
    def pytype(self):
        """int or bool."""
        return int if isinstance(self._expr, Formula) else bool

    @property
    def hint(self):
        """The value for the example numbers of the symbols; None if one of them has no example."""
        return self.shape_env.example(self._expr)

    def has_hint(self):
        return self.hint is not None

    def is_symbolic(self):
        return True

    def maybe_as_int(self):
        """The number, if it is one by now; None otherwise."""
        expr = self.expr
        return expr.constant() if isinstance(expr, Formula) else None

    def arithmetic(self, function, other, swapped=False):
        """A SymInt, or an int where no symbol is left."""
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        a, b = self.expr, other.node.expr if isinstance(other, SymInt) else Formula.of(int(other))
        if swapped:
            a, b = b, a
        made = {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}.get(
            function, lambda: a.applied(function, b)
        )()
        constant = made.constant()
        return constant if constant is not None else SymInt(SymNode(made, self.shape_env))

    def comparison(self, kind, other):
        """A SymBool, or a bool where no symbol is left."""
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        b = other.node.expr if isinstance(other, SymInt) else Formula.of(int(other))
        difference = (self.expr - b).constant()
        if difference is not None:
            return Condition(kind, Formula.of(difference), Formula.of(0)).value({})
        return SymBool(SymNode(Condition(kind, self.expr, b), self.shape_env))

    def both(self, other, kind):
        """And or Or with another condition."""
        if not isinstance(other, (bool, SymBool)):
            return NotImplemented
        if isinstance(other, bool):
            return other if other == (kind == "Or") else SymBool(self)
        return SymBool(SymNode(Condition(kind, self.expr, other.node.expr), self.shape_env))

    def negated(self):
        return SymBool(SymNode(self.expr.negated(), self.shape_env))

    def decide(self):
        """The truth of a condition, which becomes a guard."""
        return self.shape_env.evaluate_expr(self.expr)

    def number(self):
        """The number, which becomes a guard."""
        return self.shape_env.evaluate_expr(self.expr)

    def __str__(self):
        return str(self.expr)
