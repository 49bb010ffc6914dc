"""Lists and dicts of one type that Python and programs share: what `torch.jit.script` makes of a list or dict.

A plain list is copied on the way into a program; one of these is handed over, so that the program's changes show.
"""

from ..graph.types import DictType, ListType, TensorType
from .typed_values import Mismatch, accept


def scripted(value, type_):
    """A list or dict of the type; an empty one has tensors."""
    if isinstance(value, list):
        return ScriptList(value, type_ or ListType(TensorType()))
    return ScriptDict(value, type_ or DictType(TensorType(), TensorType()))


def _fitting(kind, value, what):
    try:
        return accept(kind)(value)
    except Mismatch:
        raise TypeError(f"{what}: expected a value of type {kind.annotation_str}, got {type(value).__name__}") from None


class ScriptList(list):
    """A list whose items are of one type.

    >>> numbers = cresset.jit.script([1, 2])
    >>> @cresset.jit.script
    ... def grow(x: list[int]) -> None:
    ...     x.append(3)
    >>> grow(numbers)
    >>> numbers
    [1, 2, 3]
    """

    __slots__ = ("_script_type",)

    def __init__(self, items, type_):
        self._script_type = type_
        super().__init__(self._item(item) for item in items)

    def _item(self, value):
        return _fitting(self._script_type.element, value, "ScriptList")

    def __setitem__(self, index, value):
        super().__setitem__(
            index, [self._item(item) for item in value] if isinstance(index, slice) else self._item(value)
        )

    def __contains__(self, value):
        return super().__contains__(self._item(value))

    def append(self, value):
        """Put a value at the end."""
        super().append(self._item(value))

    def insert(self, index, value):
        """Put a value before the one at `index`."""
        super().insert(index, self._item(value))

    def extend(self, values):
        """Put values at the end."""
        super().extend([self._item(value) for value in values])

    def count(self, value):
        """How often a value is in the list."""
        return super().count(self._item(value))

    def remove(self, value):
        """Take the first of the values that are equal to `value` out."""
        super().remove(self._item(value))

    def __reduce__(self):
        return list, (list(self),)


class ScriptDict(dict):
    """A dict whose keys are of one type, and its values of one."""

    __slots__ = ("_script_type",)

    def __init__(self, items, type_):
        self._script_type = type_
        super().__init__((self._key(key), self._value(value)) for key, value in items.items())

    def _key(self, key):
        return _fitting(self._script_type.key, key, "ScriptDict")

    def _value(self, value):
        return _fitting(self._script_type.value, value, "ScriptDict")

    def __setitem__(self, key, value):
        super().__setitem__(self._key(key), self._value(value))

    def __delitem__(self, key):
        super().__delitem__(self._key(key))

    def __contains__(self, key):
        try:
            return super().__contains__(self._key(key))
        except TypeError as problem:
            raise KeyError(str(problem)) from None

    def __reduce__(self):
        return dict, (dict(self),)
