"""A mode that checks what operators do against what their schemas say."""

from itertools import combinations
from typing import NamedTuple

import cresset

from .. import _native
from .._library.schema_info import SchemaArgType, SchemaArgument, SchemaInfo, overlap
from ..pytree import tree_leaves, tree_map
from ..utils._python_dispatch import TorchDispatchMode

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode"]

# Their schemas say that the result has memory of its own, which is what is unsafe about them.
_UNSAFE = {"aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk"}
_GIVE_THEIR_ARGUMENT = {"aten::lift", "aten::lift_fresh"}


class Mutation(NamedTuple):
    """An argument that an operator wrote to."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """An argument and a result in the same memory."""

    op_name: str
    arg_name: str
    output_number: str


class SchemaCheckMode(TorchDispatchMode):
    """While it is active, an operator that writes to an argument, or gives back memory of one, without its schema
    saying so is an error. What it sees stands in `ops`, `mutated` and `aliasing`.

    >>> from cresset._subclasses.schema_check_mode import SchemaCheckMode
    >>> with SchemaCheckMode() as seen:
    ...     _ = cresset.ones(2).sinh_()
    >>> seen.ops, seen.mutated
    (['aten::ones', 'aten::sinh_'], [Mutation(op_name='aten::sinh_', arg_name='input')])
    """

    def __init__(self):
        super().__init__()
        self.ops, self.mutated, self.aliasing = [], [], []

    def reset_cache(self):
        """Forget what was seen."""
        for seen in (self.ops, self.mutated, self.aliasing):
            seen.clear()

    def display_ops(self):
        """Print the names of the operators that were called."""
        print(",".join(self.ops))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        schema = func._schema
        self.ops.append(schema.name)
        given = _by_name(schema, args, kwargs or {})
        before = {name: [_State(leaf) for leaf in _tensors(value)] for name, value in given.items()}
        result = func(*args, **(kwargs or {}))
        info = SchemaInfo(schema)
        info.add_argument_values(given)
        outputs = [tree_map(_held, output) for output in (result if len(schema.returns) > 1 else (result,))]
        for index, argument in enumerate(schema.arguments):
            if given.get(argument.name) is not None:
                place = SchemaArgument(SchemaArgType.input, index)
                self._check_argument(schema.name, info, place, given[argument.name], before[argument.name], outputs)
        for i, j in combinations(range(min(len(schema.returns), len(outputs))), 2):
            places = (SchemaArgument(SchemaArgType.output, k) for k in (i, j))
            if overlap(outputs[i], outputs[j]) and not info.may_contain_alias(*places):
                raise RuntimeError(f"{schema.name}: Outputs {i} and {j} alias unexpectedly")
        return result

    def _check_argument(self, operator, info, place, value, states, outputs):
        name = info.schema.arguments[place.index].name
        name = "input" if name == "self" else name
        value = tree_map(_held, value)
        for j, output in enumerate(outputs):
            if operator not in _UNSAFE and overlap(output, value):
                if not info.may_contain_alias(SchemaArgument(SchemaArgType.output, j), place):
                    raise RuntimeError(
                        f"{operator}: Argument {name} is not defined to alias output but was aliasing output {j}"
                    )
                self.aliasing.append(Aliasing(operator, name, f"output_{j}"))
            given_back = output is value and isinstance(value, cresset.Tensor)
            if given_back and not info.is_mutable(place) and operator not in _GIVE_THEIR_ARGUMENT:
                raise RuntimeError(
                    f"{operator}: operators below autograd are not allowed to directly return inputs, but output {j} "
                    f"is {name}"
                )
        if any(state.differs() for state in states):
            if not info.is_mutable(place):
                raise RuntimeError(f"{operator}: Argument {name} is not defined as mutable but was mutated")
            self.mutated.append(Mutation(operator, name))


def _by_name(schema, args, kwargs):
    positional = (argument.name for argument in schema.arguments if not argument.keyword_only)
    return dict(zip(positional, args, strict=False)) | kwargs


def _tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, cresset.Tensor)]


def _held(value):
    """The tensor that a wrapper holds as `elem`; anything else as it is."""
    if isinstance(value, cresset.Tensor) and type(value) is not cresset.Tensor:
        return getattr(value, "elem", value)
    return value


class _State:
    """A tensor, and what it was before a call."""

    def __init__(self, tensor):
        self.tensor = tensor
        held = _held(tensor)
        # Nothing can be compared of tensors without elements here; a write to a compressed one is one to its parts.
        self.is_compared = held.layout == cresset.strided and not held.is_meta and type(held) is cresset.Tensor
        if self.is_compared:
            self.copy, self.form = held.detach().clone(), _form(held)

    def differs(self):
        if not self.is_compared:
            return False
        now = _held(self.tensor)
        return self.form != _form(now) or not _same(self.copy, now.detach())


def _form(tensor):
    return tensor.shape, tensor.stride(), _native.storage_address(tensor)


def _same(before, after):
    if before.is_floating_point() or before.is_complex():
        return cresset.allclose(before, after, equal_nan=True)
    return cresset.equal(before, after)
