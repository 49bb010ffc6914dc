"""Types of tensors by their sizes, some of which may be unknown: TensorType((2, Dyn)), a type with one size left open.

Two types are consistent if they agree where both know something; one is more precise if it knows all that the other
does.
"""

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The sizes of a tensor: numbers, Dyn, or symbols.

    >>> from cresset.fx.tensor_type import Dyn, TensorType
    >>> TensorType((1, 2, Dyn))
    TensorType[(1, 2, Dyn)]
    """

    def __init__(self, dim):
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self):
        """The sizes."""
        return self.__args__

    def __repr__(self):
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other):
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have none

    def __class_getitem__(cls, *args):
        return cls(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


class _DynType:
    """The type of `Dyn`: nothing is known."""

    def __init__(self):
        self.__name__ = "_DynType"

    def __eq__(self, other):
        return isinstance(other, _DynType)

    def __hash__(self):
        return hash(_DynType)

    def __repr__(self):
        return "Dyn"


Dyn = _DynType()


def is_consistent(t1, t2):
    """Whether two types agree in all that both know.

    >>> from cresset.fx.tensor_type import Dyn, TensorType, is_consistent
    >>> is_consistent(TensorType((2, Dyn)), TensorType((Dyn, 3)))
    True
    """
    if t1 == t2 or t1 is Dyn or t2 is Dyn or _is_symbol(t1) or _is_symbol(t2):
        return True
    return _alike(t1, t2) and all(map(is_consistent, t1.__args__, t2.__args__))


def is_more_precise(t1, t2):
    """Whether `t1` knows all that `t2` does, the same of it, and perhaps more.

    >>> from cresset.fx.tensor_type import Dyn, TensorType, is_more_precise
    >>> is_more_precise(TensorType((2, 3)), TensorType((Dyn, 3)))
    True
    """
    if t1 == t2 or t2 is Dyn or _is_symbol(t2):
        return True
    return _alike(t1, t2) and all(map(is_more_precise, t1.__args__, t2.__args__))


def _alike(t1, t2):
    return isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.__args__) == len(t2.__args__)


def _is_symbol(kind):
    return type(kind).__name__ == "Var"
