"""What passes that cut graphs share: what a node calls, whether it gives tensors, and nodes brought into order."""

import collections
import heapq
import operator

import cresset

from ...nn.modules import name_of
from ..graph import Graph
from ..node import _get_qualified_name

__all__ = [
    "CALLABLE_NODE_OPS",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_function", "call_method", "call_module"}


def get_acc_ops_name(k):
    """The name of an operator or a layer, with its place; that of an operator of an accelerator's begins "acc_ops."."""
    if isinstance(k, str):
        return k
    module = k.__module__ or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module.replace('cresset._ops', 'cresset.ops').replace('cresset', 'torch', 1)}.{k.__name__}"


def get_node_target(submodules, node):
    """What a node calls, as text: the name of a function, or the type of a layer ("torch.nn.modules.linear.Linear")."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return name_of(getattr(module, "_base_class_origin", None) or type(module))
    if node.op == "call_function":
        return _get_qualified_name(node.target)
    return node.target


def is_node_output_tensor(node):
    """Whether a node gives a tensor; its note "type", as ShapeProp leaves it, says so."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, cresset.Tensor)


def legalize_graph(gm):
    """Bring the nodes of a module's graph into an order in which each stands behind what it reads. Steps that only
    compute sizes and check them come as early as they can.
    """
    early = {
        operator.add, operator.mul, operator.sub, operator.floordiv, operator.truediv, operator.mod, operator.le,
        operator.lt, operator.ge, operator.gt, operator.eq, operator.ne,
    }  # fmt: skip
    ready = collections.deque()

    def push(node):
        first = node.op == "call_function" and node.target in early and node.all_input_nodes
        (ready.appendleft if first else ready.append)(node)

    return _reordered(gm, ready, push, ready.popleft, RuntimeError)


def stable_topological_sort(gm):
    """legalize_graph that leaves nodes in their order wherever that is one."""
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    nodes, ready = list(place), []
    return _reordered(
        gm,
        ready,
        lambda node: heapq.heappush(ready, place[node]),
        lambda: nodes[heapq.heappop(ready)],
        AssertionError,
    )


def _reordered(gm, ready, push, pop, error):
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    for node, count in missing.items():
        if count == 0:
            push(node)
    graph, copies = Graph(), {}
    while ready:
        node = pop()
        copies[node] = graph.node_copy(node, copies.__getitem__)
        for user in node.users:
            missing[user] -= 1
            if missing[user] == 0:
                push(user)
    if len(copies) != len(missing):
        raise error(f"Input graph has cycles, unable to add {[node for node in missing if node not in copies]}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm
