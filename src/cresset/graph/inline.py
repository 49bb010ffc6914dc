"""A graph with the graphs of the functions and methods that it calls in their places."""

from .graph import copy_node
from .types import ClassType, FunctionType, InterfaceType

everywhere = False  # whether functions are compiled with what they call inside of them


def set_everywhere(inline):
    """Say whether what is compiled from now on has what it calls inside of it, for `torch._C`."""
    global everywhere
    everywhere = bool(inline)


def is_everywhere():
    """What `set_everywhere` was told; False at first."""
    return everywhere


def inline_calls(function):
    """Put what a function calls into its graph."""
    _inline_nodes(function.graph.nodes(), [function])
    function.graph.eliminate_dead_code()


def inlined(function):
    """A copy of the function's graph in which no calls are left but those of interfaces, of Python, and of functions
    that call themselves.
    """
    graph = function.ensure_defined().graph.copy()
    _inline_nodes(graph.nodes(), [function])
    graph.eliminate_dead_code()
    return graph


def _called(node):
    """The Function that a node calls, if it is known."""
    if node.kind() == "prim::CallFunction":
        type_ = node.inputsAt(0).type()
        return type_.function if isinstance(type_, FunctionType) else None
    if node.kind() == "prim::CallMethod":
        type_ = node.inputsAt(0).type()
        if isinstance(type_, ClassType) and not isinstance(type_, InterfaceType):
            return type_.methods.get(node.attributes["name"])
    return None


def _inline_nodes(nodes, around):
    """Inline what these nodes call."""
    for node in nodes:
        for inner in node.blocks():
            _inline_nodes(inner.nodes(), around)
        if _called(node) is not None and _called(node) not in around:
            _inline_one(node, around)


def _inline_one(node, around):
    function = _called(node)
    graph = function.ensure_defined().graph
    if graph is None:
        return
    inputs = node.inputs()[1:] if node.kind() == "prim::CallFunction" else node.inputs()
    values = dict(zip(graph.inputs(), inputs, strict=True))
    made = [copy_node(inner, node.graph(), values).insertBefore(node) for inner in graph.nodes()]
    for old, new in zip(node.outputs(), graph.outputs(), strict=True):
        old.replaceAllUsesWith(values.get(new, new))
    node.destroy()
    _inline_nodes(made, [*around, function])
