"""The nodes of a graph by what they came from: a layer's type or a function, as notes at the nodes say."""

import dataclasses
from typing import Any

from ....nn.modules import name_of
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclasses.dataclass
class SourcePartition:
    """The nodes that one call of a layer or function became; parameters are apart from the other inputs."""

    nodes: list
    source: Any
    input_nodes: list = dataclasses.field(default_factory=list)
    output_nodes: list = dataclasses.field(default_factory=list)
    params: list = dataclasses.field(default_factory=list)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """The parts of a graph that came from the wanted types of layers and functions, by source.

    Args:
        filter_fn: called with nodes; a part counts if it is true of all of them.
    """
    found = {}
    for node in graph.nodes:
        origin = _origin(node, wanted_sources)
        if origin is not None:
            source, call = origin
            found.setdefault(source, {}).setdefault(call, []).append(node)
    return {
        source: [
            _partition(nodes, source) for nodes in calls.values() if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, calls in found.items()
    }


def _origin(node, wanted):
    """What a node came from if it is wanted, and a name for the call."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    if node.meta.get("torch_fn") is not None:
        name, function = node.meta["torch_fn"]
        if function.split(".")[1] in wanted:
            return function.split(".")[1], name
    modules = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not modules:
        return None
    name, kind = list(modules.values())[-1]
    for source in wanted:
        if kind == source or (isinstance(source, type) and _is_a(kind, source)):
            return source, name
    return None


def _is_a(kind, source):
    if isinstance(kind, type):
        return issubclass(kind, source)
    return kind == name_of(source)


def _partition(nodes, source):
    inside = set(nodes)
    inputs = {
        arg: None
        for node in nodes
        for arg in node.args
        if isinstance(arg, Node) and arg not in inside and arg.op != "get_attr"
    }
    outputs = [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)]
    return SourcePartition(nodes, source, list(inputs), outputs, [node for node in nodes if node.op == "get_attr"])


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether a node of the second part reads one of the first."""
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
