"""Cut a graph into several modules that call each other in a row."""

import operator

import cresset

from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """The nodes of one part: what comes in, what goes out, which parts it needs."""

    def __init__(self, name):
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names, self.inputs, self.outputs = [], {}, {}
        self.dependencies, self.dependents = {}, {}
        self.graph = Graph()
        self.environment = {}
        self.targets = {}

    def __repr__(self):
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m,
    root_m,
    split_callback,
    qualname_map=None,
    keep_original_order=False,
    keep_original_node_name=False,
    keep_original_input_name=True,
    *,
    partition_affix=None,
    tuple_return=False,
):
    """A module whose parts are modules: `split_callback(node)` says to which part (a number) a node belongs.

    Args:
        m: the GraphModule to split.
        root_m: not read, as in PyTorch; `m` has the parameters and submodules that the nodes name.
        qualname_map: filled with new names of targets and the old ones.
        keep_original_order: parts run in the order in which the graph first meets them.
        keep_original_node_name: nodes in parts keep the names they have.
        keep_original_input_name: inputs of parts have the names of the nodes that make them.
        partition_affix: goes into the names of parts: submod_<affix>_0.
        tuple_return: parts give tuples, also where they give one value.
    """
    parts, of_node = {}, {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        key = str(split_callback(node))
        part = parts.get(key)
        if part is None:
            part = parts[key] = Partition(f"{partition_affix}_{key}" if partition_affix else key)
        part.node_names.append(node.name)
        of_node[node] = part

    # Which values cross from one part to another, or to the outside.
    for node, part in of_node.items():
        for used in node._input_nodes:
            source = of_node.get(used)
            if source is part:
                continue
            part.inputs.setdefault(used.name)
            if source is not None:
                source.outputs.setdefault(used.name)
                part.dependencies.setdefault(source.name)
                source.dependents.setdefault(part.name)
    output = m.graph.output_node()
    for used in output._input_nodes:
        if used in of_node:
            of_node[used].outputs.setdefault(used.name)

    order = _ordered(list(parts.values()), keep_original_order)
    by_name = {node.name: node for node in m.graph.nodes}
    for part in order:
        for name in part.inputs:
            shown = name if keep_original_input_name else f"arg_{len(part.environment)}"
            part.environment[by_name[name]] = part.graph.placeholder(shown, type_expr=by_name[name].type)
            part.environment[by_name[name]].meta = dict(by_name[name].meta)
    for node, part in of_node.items():
        _copy_node(part, node, keep_original_node_name)
    return _assemble(m, order, by_name, output, qualname_map, tuple_return)


def _copy_node(part, node, keep_name):
    args = map_arg(node.args, part.environment.__getitem__)
    kwargs = map_arg(node.kwargs, part.environment.__getitem__)
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = node.target
    made = part.graph.create_node(node.op, target, args, dict(kwargs), node.name if keep_name else None, node.type)
    made.meta = dict(node.meta)
    part.environment[node] = made


def _ordered(parts, keep_original_order):
    """Parts after those that they depend on; RuntimeError where two need each other."""
    by_name = {part.name: part for part in parts}
    waiting = {part.name: set(part.dependencies) for part in parts}
    free = [name for name, needs in waiting.items() if not needs]
    ready = []
    while free:
        part = by_name[free.pop(0 if keep_original_order else -1)]
        ready.append(part)
        for name in part.dependents:
            waiting[name].discard(part.name)
            if not waiting[name]:
                free.append(name)
        if keep_original_order:
            free.sort(key=list(by_name).index)
    if len(ready) != len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return ready


def _assemble(m, order, by_name, output, qualname_map, tuple_return):
    graph, environment, attached = Graph(), {}, {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            environment[node] = graph.placeholder(node.target, type_expr=node.type, default_value=default)
        elif node.op == "get_attr":
            environment[node] = graph.get_attr(node.target, type_expr=node.type)
            attached[node.target] = _get_attr(m, node.target)
        else:
            continue
        environment[node].meta = dict(node.meta)
    for part in order:
        outputs = [by_name[name] for name in part.outputs]
        values = tuple(part.environment[node] for node in outputs)
        alone = len(values) == 1 and not tuple_return
        part.graph.output(values[0] if alone else values)
        inner = cresset.nn.Module()
        for target, original in part.targets.items():
            inner.add_module(target, _get_attr(m, original))
            if qualname_map is not None:
                qualname_map[f"{part.submod_name}.{target}"] = original
        attached[part.submod_name] = GraphModule(inner, part.graph)
        call = graph.call_module(part.submod_name, tuple(environment[by_name[name]] for name in part.inputs))
        for i, node in enumerate(outputs):
            environment[node] = call if alone else graph.call_function(operator.getitem, (call, i))
    graph.output(map_arg(output.args[0], environment.__getitem__), type_expr=output.type)
    made = GraphModule(attached, graph)
    made.meta["partition_names"] = {part.submod_name for part in order}
    return made


def split_module_simple(m, node_to_partition, *, partition_affix=None):
    """split_module with the parts given as a dict from nodes to numbers, for a graph of functions whose parts run in
    the order in which it first meets them.

    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.relu(x) + 1)
    >>> _, relu, add, _ = traced.graph.nodes
    >>> split = cresset.fx.passes.split_module.split_module_simple(traced, {relu: 0, add: 1})
    >>> [node.target for node in split.graph.nodes]
    ['x', 'submod_0', 'submod_1', 'output']
    """
    return split_module(
        m, None, node_to_partition.__getitem__, keep_original_order=True, partition_affix=partition_affix
    )
