"""What runs an operator node: an instruction of the native program where it has one, else a function, with the
arguments that it needs.

An argument that has its default's value is left out. In a graph a dtype, a layout and a memory format are numbers, as
in PyTorch's files; operators get the objects.
"""

import cresset

from .. import _native
from ..graph.types import DictType, ListType, NumberType, StringType, TensorType
from ..ops import aten_table
from . import builtins
from .numbering import CONVERTERS, to_dtype

LAST_USE = _native.program_format()["last_use"]
ARITHMETIC = {"aten::add", "aten::sub", "aten::mul", "aten::div"}  # with an instruction of their own

# ---- resolving


class Resolved:
    """How to run a node.

    instruction: the instruction and its plain numbers, or None. function: what to call else. values: the inputs that it
        gets; names: those of the last ones, as keywords.
    converted: (number of the value, function that converts it first). gives_list: the result is to become a list.
        result_types: of several results.
    """

    __slots__ = ("converted", "function", "gives_list", "instruction", "names", "result_types", "values")

    def __init__(self, values, function=None, instruction=None, names=None, converted=(), gives_list=False):
        self.values, self.function, self.instruction, self.names = values, function, instruction, names
        self.converted, self.gives_list, self.result_types = list(converted), gives_list, ()


_FORMAT = _native.program_format()
_INSTRUCTIONS = {
    **{f"aten::{name}": ("BINARY", _FORMAT["binary"][name]) for name in ("sub", "mul", "add", "matmul")},
    **{f"aten::{name}": ("COMPARE", _FORMAT["compare"][name]) for name in _FORMAT["compare"]},
    "aten::div": ("BINARY", _FORMAT["binary"]["truediv"]),
    "aten::neg": ("UNARY", _FORMAT["unary"]["neg"]),
    "aten::__not__": ("UNARY", _FORMAT["unary"]["not"]),
    "aten::Bool": ("UNARY", _FORMAT["unary"]["bool"]),
}
_OPERANDS = {"BINARY": 2, "COMPARE": 2, "UNARY": 1}
# Instructions that do the same for numbers, text and lists; `aten::div` of numbers is Python's true division.
_NUMBER_INSTRUCTIONS = {
    **_INSTRUCTIONS,
    "aten::floordiv": ("BINARY", _FORMAT["binary"]["floordiv"]),
    "aten::remainder": ("BINARY", _FORMAT["binary"]["mod"]),
    **{f"aten::__{name}__": ("BINARY", _FORMAT["binary"][name]) for name in ("and", "or", "xor", "lshift", "rshift")},
}


def resolve(to, node):
    """What runs the node; `to` is the lowering, asked which inputs are constants."""
    kind, inputs = node.kind(), node.inputs()
    tensors = any(isinstance(value.type(), TensorType) for value in inputs)
    if not tensors or isinstance(inputs[0].type(), (ListType, DictType, StringType)):
        instruction = _NUMBER_INSTRUCTIONS.get(kind)
        if instruction is not None and len(inputs) == _OPERANDS[instruction[0]]:
            return Resolved(inputs, instruction=instruction)
        function = builtins.of_plain_values(kind)
        if function is not None:
            return _builtin(to, node, function)
    instruction = _tensor_instruction(to, node)
    if instruction is not None:
        return Resolved(inputs[: _OPERANDS[instruction[0]]], instruction=instruction)
    function = builtins.of_tensors(kind)
    if function is not None:
        return _builtin(to, node, function)
    return _aten(to, node)


def _tensor_instruction(to, node):
    """A + b and its relatives on tensors go through the number slots, which bind no arguments."""
    kind, inputs = node.kind(), node.inputs()
    instruction = _INSTRUCTIONS.get(kind)
    if instruction is None or not inputs:
        return None
    if not all(
        isinstance(value.type(), (TensorType, NumberType)) or str(value.type()) in ("int", "float", "bool", "complex")
        for value in inputs[:2]
    ):
        return None
    if kind in ("aten::add", "aten::sub") and len(inputs) == 3:
        return instruction if to.is_constant(inputs[2]) and to.constant_value(inputs[2]) == 1 else None
    return instruction if len(inputs) == _OPERANDS[instruction[0]] else None


def _schema_of(node):
    if node.schema is not None:
        return node.schema
    known = aten_table.overloads(node.kind())
    fitting = [schema for schema in known if len(schema.arguments) == node.inputsSize()]
    return fitting[0] if fitting else None


def _gives_list(node):
    return node.outputsSize() == 1 and isinstance(node.output().type(), ListType)


def _builtin(to, node, function):
    """Our own function takes all arguments by position."""
    values, converted = node.inputs(), []
    schema = _schema_of(node)
    for number, convert in _conversions(schema, len(values)):
        converted.append((number, convert))
    found = Resolved(values, function, converted=converted)
    found.result_types = [output.type() for output in node.outputs()]
    return found


def _conversions(schema, count):
    """(number of the argument, converter) where a number stands for an object."""
    for number, argument in enumerate(schema.arguments[:count] if schema is not None else ()):
        kind = argument.type.removesuffix("?")
        if kind in CONVERTERS:
            yield number, CONVERTERS[kind]
        elif argument.name == "dtype" and kind == "int":
            yield number, to_dtype


def _aten(to, node):
    """One of the operators, by PyTorch's schema: constants that are the default are left out."""
    namespace, _, name = node.kind().partition("::")
    function = aten_table.function(name) if namespace == "aten" else _custom(namespace, name, node)
    if function is None:
        return Resolved(node.inputs(), Missing(node.kind()))
    schema, inputs = _schema_of(node), node.inputs()
    if schema is not None and schema.arguments and schema.arguments[-1].name == "out":
        function = getattr(cresset, name, function)  # forms of aten's own take none
    if schema is None or len(schema.arguments) != len(inputs):
        found = Resolved(inputs, function, gives_list=_gives_list(node))
        found.result_types = [output.type() for output in node.outputs()]
        return found
    positional = [n for n, argument in enumerate(schema.arguments) if not argument.keyword_only]
    keywords = [n for n, argument in enumerate(schema.arguments) if argument.keyword_only]
    while positional and _is_default(to, schema.arguments[positional[-1]], inputs[positional[-1]]):
        positional.pop()
    keywords = [n for n in keywords if not _is_default(to, schema.arguments[n], inputs[n])]
    kept = positional + keywords
    conversions = dict(_conversions(schema, len(inputs)))
    found = Resolved(
        [inputs[n] for n in kept],
        function,
        names=tuple(schema.arguments[n].name for n in keywords),
        converted=[(place, conversions[n]) for place, n in enumerate(kept) if n in conversions],
        gives_list=_gives_list(node),
    )
    found.result_types = [output.type() for output in node.outputs()]
    return found


def _is_default(to, argument, value):
    if not argument.has_default or not to.is_constant(value):
        return False
    given, default = to.constant_value(value), argument.default
    if isinstance(given, _native.Tensor) or isinstance(default, _native.Tensor):
        return False
    return given == default and isinstance(given, bool) == isinstance(default, bool)


def _custom(namespace, name, node):
    """An operator that the program registered with torch.library."""
    from ..ops.namespaces import NAMESPACES

    packet = NAMESPACES[namespace]._packets.get(name) if namespace in NAMESPACES else None
    if packet is None:
        return None
    overload = node.schema.overload_name if node.schema is not None else ""
    return packet._overloads.get(overload or "default", packet)


class Missing:
    """An operator that nothing here runs. A program may name it in a branch that is never taken, so that only running
    it is an error.
    """

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, *args):
        raise NotImplementedError(f"{self.kind}: no operator of this name runs here")
