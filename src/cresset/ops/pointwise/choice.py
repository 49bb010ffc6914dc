"""A derivative that is chosen between numbers, `where(x < 0, 0, 1)`, while it is computed with tensors.

The gradient is chosen, too: where the derivative is 0 it is 0, and not the product of 0 and a gradient that may be
infinite. Expressions know this by themselves (`expression.scale`).
"""

import operator
import threading


class _Choosing(threading.local):
    active = False


choosing = _Choosing()


class Choice:
    """`a` where the condition holds, else `b`; in any arithmetic, the tensor of these."""

    __slots__ = ("a", "b", "condition", "where")

    def __init__(self, where, condition, a, b):
        self.where, self.condition, self.a, self.b = where, condition, a, b

    def tensor(self):
        return self.where(self.condition, as_tensor(self.a), as_tensor(self.b))

    def scaled(self, grad):
        """The gradient times this."""
        a, b = _scaled(grad, self.a), _scaled(grad, self.b)
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return grad * self.tensor()
        return self.where(self.condition, a, b)


def _scaled(grad, factor):
    if isinstance(factor, Choice):
        return factor.scaled(grad)
    if type(factor) in (bool, int) and factor in (0, 1):
        return grad if factor else 0
    return grad * factor


def as_tensor(value):
    return value.tensor() if isinstance(value, Choice) else value


def is_chosen(a, b):
    """Whether a choice between these is one of numbers, or of further choices."""
    return any(isinstance(value, (bool, int, float, Choice)) for value in (a, b))


def _two(name, function):
    setattr(Choice, f"__{name}__", lambda self, other: function(self.tensor(), as_tensor(other)))
    setattr(Choice, f"__r{name}__", lambda self, other: function(as_tensor(other), self.tensor()))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _two(_name, getattr(operator, _name))
Choice.__neg__ = lambda self: -self.tensor()
