"""split_by_tags: cut a graph into modules by a mark at each node."""

import dataclasses

from ... import nn
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg
from ..proxy import Proxy
from .utils import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj, name):
    """What lies at a dotted path; None if it ends on the way."""
    for part in name.split("."):
        if isinstance(obj, nn.ModuleList):
            obj = obj._modules.get(part)
        else:
            obj = getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj, attr, value):
    """Put a value at a dotted path that is there but for its end."""
    *parents, name = attr.split(".")
    for part in parents:
        obj = getattr(obj, part)
    setattr(obj, name, value)


@dataclasses.dataclass
class Component:
    """One part while it is made: its graph, and which nodes of the whole its inputs and outputs stand for."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list = dataclasses.field(default_factory=list)
    orig_inputs: list = dataclasses.field(default_factory=list)
    orig_outputs: list = dataclasses.field(default_factory=list)
    getattr_maps: dict = dataclasses.field(default_factory=dict)
    constructor_args: list = dataclasses.field(default_factory=list)
    gm: GraphModule | None = None

    def within(self, node, part_of, copies):
        """What stands for a node of the whole in this part."""
        if node.op == "get_attr":
            if node not in self.getattr_maps:
                self.getattr_maps[node] = self.graph.get_attr(node.target, type_expr=node.type)
                self.getattr_maps[node].meta = dict(node.meta)
            return self.getattr_maps[node]
        if part_of.get(node) is self:
            return copies[node]
        if node not in self.orig_inputs:
            self.orig_inputs.append(node)
            made = self.graph.placeholder(node.name, type_expr=node.type)
            made.meta = dict(node.meta)
            self.input_placeholders.append(made)
        return self.input_placeholders[self.orig_inputs.index(node)]


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=GraphModule):  # noqa: N803
    """A module that calls one submodule for each tag, in the order of `tags`, made of the nodes with this `node.tag`.

    Every node that calls something needs a tag, not before those of what it reads. Attributes go where they are read.

    Args:
        return_fqn_mapping: return also where attributes are now: {"conv.weight": "tag.conv.weight"}.
        return_tuple: submodules give tuples, also of one value.
        GraphModuleCls: the class of what is returned.

    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.relu(x) + 1)
    >>> for node in traced.graph.nodes:
    ...     node.tag = "first" if node.name == "relu" else "second"
    >>> split = cresset.fx.passes.split_utils.split_by_tags(traced, ["first", "second"])
    >>> [node.target for node in split.graph.nodes]
    ['x', 'first', 'second', 'output']
    """
    parts = {tag: Component(Graph(), order, f"{tag}") for order, tag in enumerate(tags)}
    main, stands_for, part_of, copies = Graph(), {}, {}, {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            stands_for[node] = main.placeholder(node.name, type_expr=node.type)
            stands_for[node].meta = dict(node.meta)
        elif node.op not in ("get_attr", "output"):
            part_of[node] = part = _part_for(node, parts, part_of)
            copies[node] = part.graph.node_copy(node, lambda used, part=part: part.within(used, part_of, copies))
            copies[node].tag = node.tag
    output = gm.graph.output_node()
    for node in dict.fromkeys([used for part in parts.values() for used in part.orig_inputs] + output.all_input_nodes):
        if node.op == "get_attr":
            stands_for[node] = main.get_attr(node.name, type_expr=node.type)
        elif node.op != "placeholder":
            part_of[node].orig_outputs.append(node)
    places = {}
    for part in parts.values():
        places.update(_call(part, gm, main, stands_for, copies, return_tuple))
    main.output(map_arg(output.args[0], stands_for.__getitem__))
    main._codegen = gm.graph._codegen
    root = HolderModule({part.name: part.gm for part in parts.values()})
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            setattr(root, node.name, getattr_recursive(gm, node.target))
    split = GraphModuleCls(root, main)
    return (split, places) if return_fqn_mapping else split


def _part_for(node, parts, part_of):
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    part = parts[node.tag]
    before = max((part_of[used].order for used in node.all_input_nodes if used in part_of), default=0)
    if part.order < before:
        raise AssertionError(
            f"Component {part.name} order must be >= max of its upstream components, order={part.order} and "
            f"max={before}"
        )
    return part


def _call(part, gm, main, stands_for, copies, return_tuple):
    """Make a part's module and its call in the main graph; where its attributes are now."""
    results = tuple(copies[node] for node in part.orig_outputs)
    alone = len(results) == 1 and not return_tuple
    part.graph.output(results[0] if alone else results)
    part.gm, places = lift_subgraph_as_module(gm, part.graph, part.name)
    call = main.call_module(part.name, args=tuple(stands_for[node] for node in part.orig_inputs), kwargs=None)
    for place, node in enumerate(part.orig_outputs):
        stands_for[node] = call if alone else Proxy(call)[place].node
    return places
