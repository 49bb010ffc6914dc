"""A part of a graph as a module of its own, and whether two graphs are the same."""

from ....nn import Module
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that only holds others, by name."""

    def __init__(self, d):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """A GraphModule of `subgraph`, which holds copies of nodes of `gm`, with the attributes of gm that they name.

    Returns it, and where an attribute of gm lies in a module `comp_name`: {"conv.weight": "comp_name.conv.weight"}.
    """
    holder, places = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        source, target = gm, holder
        *parents, name = node.target.split(".")
        for part in parents:
            if not hasattr(target, part):
                target.add_module(part, HolderModule({}))
            source, target = getattr(source, part), getattr(target, part)
        setattr(target, name, getattr(source, name))
        places[node.target] = f"{comp_name}.{node.target}"
    return GraphModule(holder, subgraph, class_name), places


def compare_graphs(left, right):
    """Whether two graphs do the same steps with the same inputs and outputs, whatever the nodes are called.

    >>> a = cresset.fx.symbolic_trace(lambda x: cresset.relu(x) + 1)
    >>> b = cresset.fx.symbolic_trace(lambda y: cresset.relu(y) + 1)
    >>> cresset.fx.passes.utils.compare_graphs(a.graph, b.graph)
    True
    """
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))
