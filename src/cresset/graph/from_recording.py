"""A recording as a Graph: every call a node with all arguments of its schema, numbers and lists as constants,
parameters by their path from `self`.
"""

import cresset

from .graph import Graph
from .recording import Value
from .scalar_types import number_of
from .types import (
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    GeneratorType,
    IntType,
    ListType,
    NoneType,
    StringType,
    TensorType,
    TupleType,
    parse_schema_type,
)


def type_of_tensor(tensor):
    """What is known of a tensor."""
    return TensorType(tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device, tensor.requires_grad)


def type_of(tree):
    """The type of a tensor, or of a tuple, list or dict of them. None if it is none of these."""
    if isinstance(tree, cresset.Tensor):
        return type_of_tensor(tree)
    if isinstance(tree, tuple):
        kinds = [type_of(item) for item in tree]
        return None if None in kinds else TupleType(kinds)
    if isinstance(tree, list) and tree:
        kinds = [type_of(item) for item in tree]
        return ListType(_plain(kinds[0])) if None not in kinds and all(kind == kinds[0] for kind in kinds) else None
    if isinstance(tree, dict) and tree:
        kinds = [type_of(item) for item in tree.values()]
        keys = {type(key) for key in tree}
        if None in kinds or any(kind != kinds[0] for kind in kinds) or keys not in ({str}, {int}):
            return None
        return DictType(StringType() if keys == {str} else IntType(), _plain(kinds[0]))
    return None


def _plain(type):
    return TensorType() if isinstance(type, TensorType) else type


class Writer:
    """Writes recorded calls into a Graph.

    Args:
        recorder: the finished recording.
        self_type: the ClassType of the module that was recorded; None for a function.
    """

    def __init__(self, recorder, self_type=None):
        self.recorder, self.graph = recorder, Graph()
        self.values = {}  # Value of the recording -> of the graph
        self.constants, self.paths = {}, {}
        if self_type is not None:
            self.paths[""] = self.graph.addInput("self", self_type)

    # ---- what goes in

    def add_input(self, name, tree):
        """An input: a tensor, or a tuple, list or dict of tensors, which is taken apart."""
        value = self.graph.addInput(name, type_of(tree))
        self._take_apart(value, tree)
        return value

    def _take_apart(self, value, tree):
        if isinstance(tree, cresset.Tensor):
            self.values.setdefault(self.recorder.input_values[id(tree)], value)
            return
        if isinstance(tree, dict):
            kind = "aten::__getitem__"
            for key, item in tree.items():
                node = self.graph.insert(
                    kind, [value, self.constant(key)], [_plain(type_of(item))], self._getitem(value)
                )
                self._take_apart(node.output(), item)
            return
        kind = "prim::TupleUnpack" if isinstance(tree, tuple) else "prim::ListUnpack"
        node = self.graph.insert(kind, [value], [type_of(item) for item in tree])
        for output, item in zip(node.outputs(), tree, strict=True):
            self._take_apart(output, item)

    def _getitem(self, value):
        from ..ops import aten_table

        return aten_table.find(f"aten::__getitem__.Dict_{'str' if isinstance(value.type().key, StringType) else 'int'}")

    # ---- calls

    def write(self, call):
        """Add a node for a recorded call."""
        graph, schema = self.graph, call.operator
        inputs = [
            self.argument(value, declared.type) for declared, value in zip(schema.arguments, call.args, strict=True)
        ]
        results = schema.returns
        if len(results) == 1 and results[0].type == "Tensor[]":
            node = graph.insert(f"{schema.name}", inputs, [ListType(TensorType())], schema)
            self._mark(node, call)
            node = graph.insert("prim::ListUnpack", [node.output()], [self._type(value) for value in call.results])
        else:
            node = graph.insert(
                f"{schema.name}",
                inputs,
                [self._type(value) for value in call.results] or [parse_schema_type(r.type) for r in results],
                schema,
            )
        self._mark(node, call)
        for value, output in zip(call.results, node.outputs(), strict=True):
            self.values[value] = output

    def _mark(self, node, call):
        node.place, node.scope = call.place, call.place.module

    def _type(self, value):
        if value.shape is None:
            return IntType() if value.kind is int else FloatType()
        return TensorType(value.dtype, value.shape)

    def argument(self, value, kind):
        """The graph's value of an argument: a recorded one, a list, or a constant."""
        optional = kind.removesuffix("?")
        if isinstance(value, Value):
            return self.value(value)
        if isinstance(value, (list, tuple)) and optional.endswith("]"):
            element = optional[:-1].rpartition("[")[0]
            items = [self.argument(item, element) for item in value]
            return self.graph.insert("prim::ListConstruct", items, [ListType(parse_schema_type(element))]).output()
        if optional == "Tensor" and value is not None:
            return self.constant(cresset.tensor(value))
        if optional == "float" and value is not None:
            return self.constant(float(value))
        return self.constant(value)

    def value(self, value):
        """What stands for a recorded value: what made it, a parameter, or a constant."""
        if value in self.values:
            return self.values[value]
        if value.parameter is not None and "" in self.paths:
            made = self.attribute(value.parameter)
        elif value.data is None:
            raise AssertionError("from_recording: a value that nothing made")
        elif value.data.requires_grad:
            raise RuntimeError(
                f"{self.recorder.front.name}: Cannot insert a Tensor that requires grad as a constant. Consider "
                "making it a parameter or input, or detaching the gradient; "
                f"its shape is {tuple(value.data.shape)}"
            )
        else:
            made = self.graph.insertConstant(value.data.detach(), type_of_tensor(value.data))
        self.values[value] = made
        return made

    def attribute(self, path):
        """The attribute of `self` at a dotted path."""
        if path not in self.paths:
            parent, _, name = path.rpartition(".")
            owner = self.attribute(parent) if parent else self.paths[""]
            self.paths[path] = self.graph.insert(
                "prim::GetAttr", [owner], [owner.type().attributes[name]], name=name
            ).output()
        return self.paths[path]

    def constant(self, value):
        """A constant of a number, text, tensor, dtype, device or None."""
        types = ((bool, BoolType), (int, IntType), (float, FloatType), (complex, ComplexType), (str, StringType))
        value = number_of(value)
        if value is None:
            type = NoneType()
        elif isinstance(value, cresset.Tensor):
            type = type_of_tensor(value)
        elif isinstance(value, cresset.device):
            type = DeviceObjType()
        elif isinstance(value, cresset.Generator):
            type = GeneratorType()
        else:
            type = next(kind() for python, kind in types if isinstance(value, python))
        return self.graph.insertConstant(value, type)

    # ---- what comes out

    def result(self, tree):
        """The value of a result: a tensor, or a tuple, list or dict of results."""
        if isinstance(tree, cresset.Tensor):
            return self.value(self.recorder.value_of(tree))
        if isinstance(tree, (list, tuple)):
            items = [self.result(item) for item in tree]
            if isinstance(tree, tuple):
                return self.graph.insert("prim::TupleConstruct", items, [TupleType([v.type() for v in items])]).output()
            return self.graph.insert(
                "prim::ListConstruct", items, [ListType(_plain(items[0].type()) if items else TensorType())]
            ).output()
        pairs = [value for key, item in tree.items() for value in (self.constant(key), self.result(item))]
        kind = type_of(tree)
        return self.graph.insert("prim::DictConstruct", pairs, [kind]).output()
