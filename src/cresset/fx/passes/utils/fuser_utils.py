"""Put a group of a graph's nodes into a module that the graph then calls."""

import heapq

from ...graph import Graph
from ...proxy import Proxy
from ..tools_common import stable_topological_sort
from .common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes):
    """The nodes such that each stands behind those it reads, otherwise in the order given."""
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(used in place for used in node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if missing[node] == 0]
    done = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        done.append(node)
        for user in node.users:
            if user in place:
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(ready, place[user])
    if len(done) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return done


def validate_partition(partition):
    """Whether nodes can become one step: no way leads out of them and back in."""
    inside = set(partition)
    pending = [user for node in inside for user in node.users if user not in inside]
    seen = set(pending)
    while pending:
        for user in pending.pop().users:
            if user in inside:
                return False
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return True


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """A GraphModule of copies of `nodes`, which stand in order; the nodes it needs from outside, and those of its own
    that are read outside.

    Args:
        module_name: what its class is called.
        partition_lookup_table: the nodes as keys of a dict, if there is one already.
        always_return_tuple: give a tuple also where one value is read outside.
    """
    there = set(gm.graph.nodes)
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node not in there:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = partition_lookup_table if partition_lookup_table is not None else dict.fromkeys(nodes)
    graph, inputs, copies = Graph(), {}, {}

    def within(node):
        if node in inside:
            return copies[node]
        if node not in inputs:
            inputs[node] = graph.placeholder(node.name, type_expr=node.type)
            inputs[node].meta = dict(node.meta)
        return inputs[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, within)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    values = tuple(copies[node] for node in outputs)
    graph.output(values[0] if len(values) == 1 and not always_return_tuple else values)
    graph.lint()
    module, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return module, tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs, insertion_point=None):
    """Let the graph of `gm` call `sub_gm` (under the name of its class) behind `insertion_point`, by default the last
    of `orig_outputs`, whose readers read its results.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
        if insertion_point is None:
            raise AssertionError(
                "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the "
                "last partition node as insertion_point."
            )
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=tuple(orig_inputs), kwargs=None)
    if not orig_outputs:
        return gm
    with gm.graph.inserting_before(call.next):
        if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
        for place, node in enumerate(orig_outputs):
            node.replace_all_uses_with(Proxy(call)[place].node, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm, nodes):
    """Take nodes out, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Put each group of nodes (a dict with the nodes as keys) into a module, called `prefix` and its number."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        module, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, module, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
