"""Give the nodes that take a part of a container the type that the container's own type says."""

import operator
import typing

import cresset

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph):
    """Note types at `x[i]` where the node of x has one: of tuples, lists and named tuples."""
    for node in graph.nodes:
        if node.target is operator.getitem and node.args[0].type:
            kind = _part(node.args[0].type, node.args[1])
            if kind is not None:
                node.type = kind


def _part(kind, index):
    inside, origin = typing.get_args(kind), typing.get_origin(kind)
    if origin is tuple:
        if len(inside) == 2 and inside[1] is ...:
            return inside[0]
        if index >= len(inside):
            raise AssertionError(f"annotate_getitem_nodes: {kind} has no part {index}")
        return inside[index]
    if origin is list:
        return inside[0] if inside else None
    if hasattr(kind, "_fields") and kind is not cresset.Tensor:
        return kind.__annotations__[kind._fields[index]]
    return None
