"""CapabilityBasedPartitioner: the largest groups of nodes that a backend can run, each made a module.

Nodes are visited from the last to the first. Each that can be run begins a group; groups are then joined wherever that
leaves the graph without a circle: no way may lead out of a group and back into it, also through other groups.
"""

import itertools
import operator

from ...node import _get_qualified_name
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

_NO_WORK = {"torch.ops.aten.view", "_operator.getitem"}


class Partition:
    """A group: its nodes as the keys of a dict, whose values say their order."""

    def __init__(self, id=None, nodes=None, node_orders=None):
        nodes = list(nodes) if nodes is not None else []
        orders = [None] * len(nodes) if node_orders is None else list(node_orders)
        if len(nodes) != len(orders):
            raise AssertionError("nodes and node_orders must have the same length")
        self.id, self.nodes = id, dict(zip(nodes, orders, strict=True))

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node, node_order=None):
        """Take a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node):
        """Let a node go."""
        del self.nodes[node]

    def size(self):
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes of a module that a backend can run.

    Args:
        graph_module: the module; partition_and_fuse changes it.
        operator_support: says which nodes can be run (cresset.fx.passes.operator_support).
        allows_single_node_partition: keep groups of one node that computes something.
        non_compute_ops: names of functions that compute nothing, besides view and getitem.
        allowed_single_node_partition_ops: not read, as in PyTorch.
        skip_horizontal_fusion: join a node only with groups that read it.

    >>> from cresset.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    >>> from cresset.fx.passes.operator_support import create_op_support
    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.relu(x + 1).sum())
    >>> able = create_op_support(lambda modules, node: node.op == "call_function")
    >>> fused = CapabilityBasedPartitioner(traced, able).partition_and_fuse()
    >>> [node.name for node in fused.graph.nodes]
    ['x', 'fused_0', 'sum_1', 'output']
    """

    def __init__(
        self,
        graph_module,
        operator_support,
        allows_single_node_partition=False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
        skip_horizontal_fusion=False,
    ):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or [])
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or [])
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self):
        """The groups, as a list of Partition; nothing is changed."""
        modules = dict(self.graph_module.named_modules())
        groups, of_node, begun = {}, {}, {}
        numbers = itertools.count()
        for order, node in enumerate(reversed(self.graph_module.graph.nodes)):
            new = self.operator_support.is_node_supported(modules, node)
            if new:
                number = next(numbers)
                groups[number] = Partition(number, [node], [order])
                of_node[node] = begun[number] = number
            if not self.skip_horizontal_fusion:
                candidates = sorted(groups, key=lambda one: (not new or one != number, begun[one]))
            else:
                readers = [of_node[user] for user in node.users if user in of_node]
                candidates = list(dict.fromkeys([number, *readers])) if new else []
            for other in candidates[1:]:
                candidates[0] = self._joined(candidates[0], other, groups, of_node, begun)
        for group in groups.values():
            group.nodes = dict(sorted(group.nodes.items(), key=operator.itemgetter(1), reverse=True))
        self._take_parts_of_results(groups, of_node)
        if not self.allows_single_node_partition:
            groups = {number: group for number, group in groups.items() if self._work(group) > 1}
        return [group for group in groups.values() if group.size()]

    def _joined(self, one, other, groups, of_node, begun):
        """The number of the two groups made one, or `one` where that makes a circle."""
        merged = {**groups[one].nodes, **groups[other].nodes}
        if _leads_back(merged, groups, of_node):
            return one
        kept, gone = (other, one) if groups[one].size() < groups[other].size() else (one, other)
        groups[kept].nodes.update(groups[gone].nodes)
        of_node.update(dict.fromkeys(groups[gone].nodes, kept))
        begun[kept] = min(begun[kept], begun.pop(gone))
        del groups[gone]
        return kept

    def _take_parts_of_results(self, groups, of_node):
        """Parts of a tuple belong to the group that makes the tuple, or to none."""
        moved = True
        while moved:
            moved = {
                user: of_node.get(node)
                for node in self.graph_module.graph.nodes
                if all(_is_part(user) for user in node.users)
                for user in node.users
                if of_node.get(user) != of_node.get(node)
            }
            for node, number in moved.items():
                if node in of_node:
                    groups[of_node.pop(node)].remove_node(node)
                if number is not None:
                    of_node[node] = number
                    groups[number].add_node(node)

    def _work(self, group):
        """How many nodes compute something."""
        idle = _NO_WORK.union(self.non_compute_ops)
        return sum(node.op == "call_function" and _get_qualified_name(node.target) not in idle for node in group.nodes)

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Make each group a module, called `prefix` and its number."""
        return fuse_by_partitions(self.graph_module, [group.nodes for group in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Let nodes go that compute nothing (`non_compute_ops`) at the beginning or the end of a group."""
        idle = set(self.non_compute_ops)
        for group in partitions:
            inside = set(group.nodes)
            gone = {
                node
                for node in inside
                if _at_edge(node, inside, idle, lambda n: n.all_input_nodes)
                or _at_edge(node, inside, idle, lambda n: n.users)
            }
            for node in gone:
                group.remove_node(node)

    def partition_and_fuse(self, prefix="fused_"):
        """propose_partitions, then fuse_partitions."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def _leads_back(merged, groups, of_node):
    """Whether a way leads out of these nodes and back, where a group is entered anywhere and left anywhere."""
    pending = [user for node in merged for user in node.users if user not in merged]
    seen = set(pending)
    while pending:
        node = pending.pop()
        group = groups[of_node[node]].nodes if node in of_node else (node,)
        for user in {user for one in group for user in one.users}:
            if user in merged:
                return True
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _is_part(node):
    return node.op == "call_function" and node.target is operator.getitem


def _at_edge(node, inside, idle, next_of):
    """Whether a node computes nothing, nor do those of the group between it and the group's edge."""
    if node not in inside or node.op == "placeholder":
        return True
    if node.op != "call_function" or _get_qualified_name(node.target) not in idle:
        return False
    return all(_at_edge(other, inside, idle, next_of) for other in next_of(node))
