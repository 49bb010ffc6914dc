"""Changing all calls of a kind in a graph, and the bytes that nodes need."""

from typing import NamedTuple

import cresset

from ..graph import Graph
from ..node import map_arg
from .shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Let all nodes that do `old_op` with `old_target` do `new_op` with `new_target`, on the same arguments.

    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.relu(x))
    >>> change = cresset.fx.passes.graph_manipulation.replace_target_nodes_with
    >>> change(traced, "call_function", cresset.relu, "call_method", "sigmoid")
    >>> traced(cresset.zeros(1))
    tensor([0.5000])
    """
    graph, stands_for = Graph(), {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = map_arg(node.args, stands_for.__getitem__)
            kwargs = map_arg(node.kwargs, stands_for.__getitem__)
            stands_for[node] = graph.create_node(new_op, new_target, args, dict(kwargs), node.name)
        else:
            stands_for[node] = graph.node_copy(node, stands_for.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):  # noqa: N801  PyTorch's name
    """The bytes of a node's result, and these with those of its parameters."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module, args=None):
    """Note at each node, as `node.size_bytes`, what it needs. With `args`, example inputs, the module is run first."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node):
    """What ShapeProp noted at a node; RuntimeError if it has not run."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module, node):
    """size_bytes of one node; parameters count in the dtype of the result."""
    known = get_tensor_meta(node)
    result = known.shape.numel()
    held = 0
    if node.op == "call_module":
        held = sum(parameter.numel() for parameter in fx_module.get_submodule(node.target).parameters())
    each = cresset.empty(0, dtype=cresset.uint8 if known.is_quantized else known.dtype).element_size()
    return size_bytes(each * result, each * (result + held))
