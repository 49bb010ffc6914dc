"""What a schema says about a call: which arguments and results may lie in the same memory, and which are written to.

A schema's letters say it of the operator; the values of a call add which of its arguments are in the same memory, and
what training changes in batch norms.
"""

import enum
from dataclasses import dataclass

import cresset

from .. import _native
from ..ops.namespaces import Schema
from ..pytree import tree_leaves

_ANYWHERE = "alias::*"  # in the memory of anything of its type
# Operators that write to their running statistics where they train, which their schemas do not say.
_RUNNING = {"running_mean", "running_var", "running_mean_", "running_var_"}


class SchemaArgType(enum.Enum):
    """Whether a place of a schema is an argument or a result."""

    input = 0
    output = 1


@dataclass(frozen=True)
class SchemaArgument:
    """A place of a schema: the argument or result number `index`."""

    type: SchemaArgType
    index: int


def overlap(first, second):
    """Whether a tensor of the one lies in the storage of a tensor of the other. Both may be lists.

    >>> from cresset._library.schema_info import overlap
    >>> x = cresset.ones(4)
    >>> overlap(x, [x[1:], cresset.ones(1)]), overlap(x, [])
    (True, False)
    """
    return not storages(first).isdisjoint(storages(second))


def storages(value):
    """The storages of a tensor, or of the tensors in a list; of a sparse tensor those of its parts."""
    return {
        _native.storage_address(part)
        for leaf in tree_leaves(value)
        if isinstance(leaf, cresset.Tensor)
        for part in _parts(leaf)
    }


def _parts(tensor):
    if tensor.layout == cresset.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (cresset.sparse_csr, cresset.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (cresset.sparse_csc, cresset.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


class SchemaInfo:
    """A schema, or its text, and the values that a call gives its arguments.

    >>> info = cresset._C._SchemaInfo("f(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    >>> info.is_mutable("self"), info.is_mutable("other")
    (True, False)
    >>> x = cresset.ones(2)
    >>> info.add_argument_values({"self": x, "other": x})
    >>> info.is_mutable("other")
    True
    """

    def __init__(self, schema):
        self.schema = Schema(schema) if isinstance(schema, str) else schema
        self._values = {}

    def add_argument_value(self, name, value):
        """Tell which value a call gives an argument."""
        self._values[self._named(name).name] = value

    def add_argument_values(self, values):
        """The same for several, by name. Values of arguments that the schema does not have say nothing."""
        for name, value in values.items():
            if any(argument.name in (name, "self" if name == "input" else name) for argument in self.schema.arguments):
                self.add_argument_value(name, value)

    def _named(self, name):
        for argument in self.schema.arguments:
            if argument.name == name or (argument.name, name) == ("self", "input"):
                return argument
        raise RuntimeError(f"{self.schema.name}: Schema has no argument named {name}")

    def _at(self, place):
        entries = self.schema.arguments if place.type is SchemaArgType.input else self.schema.returns
        if not 0 <= place.index < len(entries):
            raise RuntimeError(
                f"{self.schema.name}: Invalid index {place.index} for schema, which has {len(entries)} "
                f"{place.type.name}s"
            )
        return entries[place.index]

    def _value(self, place):
        return self._values.get(self._at(place).name) if place.type is SchemaArgType.input else None

    def _trains(self):
        return any(bool(self._values.get(name)) for name in ("training", "train", "use_input_stats"))

    def is_mutable(self, argument=None):
        """Whether a call writes to an argument (a SchemaArgument, or its name); without one, whether to any."""
        if argument is None:
            inputs = range(len(self.schema.arguments))
            return any(self.is_mutable(SchemaArgument(SchemaArgType.input, index)) for index in inputs)
        if isinstance(argument, str):
            index = self.schema.arguments.index(self._named(argument))
            argument = SchemaArgument(SchemaArgType.input, index)
        return any(self._is_written(other) for other in self._sharing(argument))

    def has_argument(self, name):
        """Whether the schema has an argument of a name."""
        return any(argument.name == name for argument in self.schema.arguments)

    def _is_written(self, place):
        entry = self._at(place)
        if place.type is SchemaArgType.input and entry.name in _RUNNING and self._trains():
            return True
        return entry.is_written

    def _sharing(self, place):
        """A place, and the arguments whose values are in the memory of its value."""
        own = storages(self._value(place))
        inputs = (SchemaArgument(SchemaArgType.input, index) for index in range(len(self.schema.arguments)))
        return [place, *(other for other in inputs if other != place and own & storages(self._value(other)))]

    def may_alias(self, first, second):
        """Whether two places may be the same memory, by the schema or by their values."""
        return self._may(first, second, contained=False)

    def may_contain_alias(self, first, second, bidirectional=True):
        """The same, where a place may also be a list of what is in the memory of the other.

        Args:
            bidirectional: whether the second may also be a list that has the first.
        """
        return self._may(first, second, contained=True, both=bidirectional)

    def _may(self, first, second, contained, both=True):
        for one in self._sharing(first):
            for other in self._sharing(second):
                if one == other:
                    return True
                mine, theirs = self._memory(one, contained), self._memory(other, contained and both)
                if mine & theirs or (_ANYWHERE in mine and theirs) or (_ANYWHERE in theirs and mine):
                    return True
        return False

    def _memory(self, place, contained):
        """The letters of a place; the empty set where it is in memory of its own."""
        entry = self._at(place)
        alias = entry.alias_info
        if alias is None or (not contained and entry.type.rstrip("?").endswith("]")):
            return frozenset()
        # After the call an argument `(a -> *)` may be in a list; a result is where the schema says it ends up.
        return alias.before_set | alias.after_set if place.type is SchemaArgType.input else alias.after_set
