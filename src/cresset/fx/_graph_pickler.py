"""Graphs as bytes and back. The bytes hold data alone: names of operators, arguments, tensors and modules in the format
of `torch.save`; functions are looked up by name among the library's, and nothing of the bytes is run.
"""

import builtins
import contextlib
import dataclasses
import io
import math
import operator
from collections.abc import Callable

import cresset

from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..dispatch.handling import without_modes
from ..pytree import tree_map_only, treespec_dumps, treespec_loads
from ._symbolic_trace import _PytreeInfo
from .code import CodeGen, _PyTreeCodeGen
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, _get_qualified_name

__all__ = ["GraphPickler", "Options"]


def _ops_filter_safe(name):
    """Whether a function is one of the library's own, which the reader will have."""
    return name.startswith(("torch.ops.aten.", "torch.ops.prims.", "_operator.", "operator.")) or (
        name.startswith("torch.") and not name.startswith("torch.ops.")
    )


@dataclasses.dataclass
class Options:
    """What may be written.

    Args:
        ops_filter: says of a function's name whether it may; None allows all that have a name.
        node_metadata_key_filter: says of a key of `node.meta` whether its value is kept; None keeps all that is data.
        ignore_raw_node: whether a node outside of its graph becomes None; otherwise it is an error.
    """

    ops_filter: Callable | None = _ops_filter_safe
    node_metadata_key_filter: Callable | None = None
    ignore_raw_node: bool = False


class GraphPickler:
    """`dumps` and `loads` of graphs, graph modules and containers of them."""

    @classmethod
    def dumps(cls, obj, options=None):
        """The bytes of a graph, a graph module, or a container of them."""
        file = io.BytesIO()
        cresset.save(_written(obj, options or Options()), file)
        return file.getvalue()

    @staticmethod
    def loads(data, fake_mode=None):
        """What `dumps` has written.

        Args:
            fake_mode: a mode under which the values are made; None makes them as they were.
        """
        with fake_mode if fake_mode is not None else contextlib.nullcontext():
            return _read(cresset.load(io.BytesIO(data), weights_only=False), fake_mode or FakeTensorMode())


# ---- writing


def _written(value, options):
    if isinstance(value, Node):
        if options.ignore_raw_node:
            return {"is": "value", "value": None}
        raise AssertionError(f"GraphPickler: the node {value.name} stands outside of its graph")
    if isinstance(value, GraphModule):
        names = {node.target for node in value.graph.nodes if node.op in ("get_attr", "call_module")}
        found = {name: _at(value, name) for name in sorted(names)}
        return {
            "is": "GraphModule",
            "class": type(value).__name__,
            "training": value.training,
            "graph": _graph_data(value.graph, options),
            "attributes": found,
        }
    if isinstance(value, Graph):
        return {"is": "Graph", "graph": _graph_data(value, options)}
    if type(value) in (list, tuple):
        return {"is": type(value).__name__, "items": [_written(item, options) for item in value]}
    if type(value) is dict:
        return {"is": "dict", "items": [(key, _written(item, options)) for key, item in value.items()]}
    return {"is": "value", "value": value}


def _at(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _graph_data(graph, options):
    nodes = []
    keep = options.node_metadata_key_filter or (lambda key: True)
    for node in graph.nodes:
        args, kwargs = tree_map_only(Node, lambda n: _Place(n.name), (list(node.args), dict(node.kwargs)))
        meta = {key: tree_map_only(FakeTensor, _fake_data, item) for key, item in node.meta.items() if keep(key)}
        meta = {key: item for key, item in meta.items() if _is_data(item)}
        target = _function_name(node.target, options) if node.op == "call_function" else node.target
        nodes.append((node.op, node.name, target, _marked(args), _marked(kwargs), meta))
    codegen, tree = graph._codegen, None
    if type(codegen) is _PyTreeCodeGen:
        info = codegen.pytree_info
        specs = [None if spec is None else treespec_dumps(spec) for spec in (info.in_spec, info.out_spec)]
        tree = (list(info.orig_args), *specs)
    elif type(codegen) is not CodeGen:
        raise RuntimeError(f"GraphPickler: a graph with a {type(codegen).__name__} cannot be written")
    return {"nodes": nodes, "tree": tree}


class _Place:
    """A node among arguments."""

    def __init__(self, name):
        self.name = name


def _marked(value):
    """Arguments as data: nodes as ("node", name), containers and values with a word that says what they are."""
    if isinstance(value, _Place):
        return ("node", value.name)
    if isinstance(value, (list, tuple)):
        return ("list" if isinstance(value, list) else "tuple", [_marked(item) for item in value])
    if isinstance(value, dict):
        return ("dict", [(key, _marked(item)) for key, item in value.items()])
    if isinstance(value, slice):
        return ("slice", [_marked(item) for item in (value.start, value.stop, value.step)])
    if value is ...:
        return ("ellipsis", None)
    if not _is_data(value):
        raise RuntimeError(f"GraphPickler: an argument of the class {type(value).__name__} cannot be written")
    return ("value", value)


_DATA = (
    bool, int, float, complex, str, bytes, type(None), cresset.Tensor, cresset.dtype, cresset.device, cresset.layout,
    cresset.memory_format,
)  # fmt: skip


def _is_data(value):
    if type(value) in (list, tuple):
        return all(map(_is_data, value))
    if type(value) is dict:
        return all(_is_data(key) and _is_data(item) for key, item in value.items())
    return isinstance(value, _DATA)


def _function_name(function, options):
    name = _get_qualified_name(function)
    if options.ops_filter is not None and not options.ops_filter(name):
        raise RuntimeError(f"GraphPickler: the function {name} may not be written (ops_filter)")
    if _function(name, None) is not function:
        raise RuntimeError(f"GraphPickler: the function {name} cannot be found by its name, and so not be written")
    return name


_FAKE = "a fake tensor"


def _fake_data(fake):
    about = tuple(fake.shape), fake.stride(), fake.dtype, str(fake.device), fake.requires_grad
    return {_FAKE: about}


# ---- reading

_ROOTS = {"torch": cresset, "_operator": operator, "operator": operator, "math": math}
_FUNCTIONS = {"builtins.getattr": builtins.getattr, "getattr": builtins.getattr}


def _function(name, default=...):
    """The library's function of this name; a name that leads elsewhere has none."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    root, *parts = name.split(".")
    found = _ROOTS.get(root)
    for part in parts:
        found = None if part.startswith("__") else getattr(found, part, None)
    module = getattr(found, "__module__", None) or ""
    ours = module.partition(".")[0] in ("cresset", "torch", "_operator", "math", "builtins")
    if not callable(found) or not (ours or name.startswith("torch.")) or isinstance(found, type):
        if default is not ...:
            return default
        raise RuntimeError(f"GraphPickler: {name} is no function of the library")
    return found


def _read(data, fake_mode):
    kind = data["is"]
    if kind == "value":
        return data["value"]
    if kind in ("list", "tuple"):
        items = [_read(item, fake_mode) for item in data["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _read(item, fake_mode) for key, item in data["items"]}
    graph = _graph(data["graph"], fake_mode)
    if kind == "Graph":
        return graph
    made = GraphModule(data["attributes"], graph, data["class"])
    made.training = data["training"]
    return made


def _graph(data, fake_mode):
    graph, nodes = Graph(), {}
    if data["tree"] is not None:
        names, *specs = data["tree"]
        specs = [None if spec is None else treespec_loads(spec) for spec in specs]
        graph.set_codegen(_PyTreeCodeGen(_PytreeInfo(names, *specs)))
    for op, name, target, args, kwargs, meta in data["nodes"]:
        function = _function(target) if op == "call_function" else target
        node = graph.create_node(op, function, tuple(_value(args, nodes)), _value(kwargs, nodes), name)
        node.name = name
        node.meta = {key: _with_fakes(item, fake_mode) for key, item in meta.items()}
        nodes[name] = node
    graph.lint()
    return graph


def _with_fakes(item, fake_mode):
    """What a node's notes held, with fake tensors where they are described."""
    if type(item) in (list, tuple):
        return type(item)(_with_fakes(one, fake_mode) for one in item)
    if type(item) is not dict:
        return item
    if set(item) != {_FAKE}:
        return {key: _with_fakes(one, fake_mode) for key, one in item.items()}
    shape, strides, dtype, device, requires_grad = item[_FAKE]
    with without_modes():
        held = cresset.empty_strided(shape, strides, dtype=dtype, device="meta")
    fake = FakeTensor(fake_mode, held, device)
    return fake.requires_grad_() if requires_grad else fake


def _value(marked, nodes):
    kind, value = marked
    if kind == "node":
        return nodes[value]
    if kind in ("list", "tuple", "slice"):
        items = [_value(item, nodes) for item in value]
        return items if kind == "list" else tuple(items) if kind == "tuple" else slice(*items)
    if kind == "dict":
        return {key: _value(item, nodes) for key, item in value}
    return ... if kind == "ellipsis" else value
