"""A joint graph of a function and its derivative, taken apart: what runs forward, what runs backward, and what is kept
between them.

The joint graph's inputs are the function's (`primals_1`, ...) and the gradients of its results (`tangents_1`, ...); its
outputs are the results, then the gradients of the inputs.
"""

import math
import operator

import cresset

from ..fx import Graph, GraphModule
from ..fx.node import map_arg
from ..ops.pointwise import definitions
from .max_flow import least_cut

__all__ = ["default_partition", "min_cut_rematerialization_partition"]


def default_partition(
    joint_module, _joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None,
    static_lifetime_input_nodes=None,
):  # fmt: skip
    """(the forward graph, the backward graph). What the results do not need is computed backward, and what backward
    needs of the rest is kept.

    Args:
        joint_module: the joint graph, as a GraphModule.
        _joint_inputs: what it was recorded with.
        num_fwd_outputs: how many of its outputs are results.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    return joint.split([node for node in joint.before if node in joint.forward and joint.is_read_backward(node)])


def min_cut_rematerialization_partition(
    joint_module, _joint_inputs, compiler="inductor", *, num_fwd_outputs, static_lifetime_input_indices=None
):
    """(the forward graph, the backward graph), with as few bytes kept between them as can be: backward computes again
    what is made of what is kept by pointwise operators and views.

    Args:
        joint_module: the joint graph, as a GraphModule.
        _joint_inputs: what it was recorded with.
        num_fwd_outputs: how many of its outputs are results.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    if joint.writes:  # what is computed again would read what was written meanwhile
        return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
    capacities = {}
    for node in joint.before:
        is_kept_whole = isinstance(node.meta.get("val"), cresset.Tensor)
        capacities[(node, "in"), (node, "out")] = _bytes(node) if is_kept_whole else math.inf
        if not _is_cheap(node):
            capacities["source", (node, "in")] = math.inf
        if joint.is_read_backward(node, by_backward_alone=True):
            capacities[(node, "out"), "sink"] = math.inf
        for user in node.users:
            if user in joint.before_set:
                capacities[(node, "out"), (user, "in")] = math.inf
    reached = least_cut(capacities, "source", "sink")
    return joint.split([n for n in joint.before if (n, "in") in reached and (n, "out") not in reached])


class _Joint:
    """What is known of the nodes of a joint graph."""

    def __init__(self, module, count):
        self.module, nodes = module, list(module.graph.nodes)
        outputs = list(module.graph.output_node().args[0])
        self.results, self.gradients = outputs[:count], outputs[count:]
        self.primals = [n for n in nodes if n.op == "placeholder" and not n.name.startswith("tangents")]
        self.tangents = [n for n in nodes if n.op == "placeholder" and n.name.startswith("tangents")]
        after = set(self.tangents)
        for node in nodes:
            if after.intersection(node.all_input_nodes):
                after.add(node)
        self.before = [n for n in nodes if n not in after and n.op != "output"]  # does not depend on tangents
        self.before_set = set(self.before)
        self.writes = [n for n in self.before if _is_write(n)]
        # What the results need; with writes all that can be computed before them, in the order of the program.
        self.forward = self.before_set if self.writes else _needed([*self.results, *self.primals])
        # Of what gives several results, each of them can be kept, but not all as one.
        self.forward |= {n for n in self.before if n.target is operator.getitem and n.args[0] in self.forward}

    def is_read_backward(self, node, *, by_backward_alone=False):
        """Whether the gradients read it: as they are, or by what is computed backward."""
        there = self.before_set if by_backward_alone else self.forward
        return node in self.gradients or any(user not in there and user.op != "output" for user in node.users)

    def split(self, kept):
        """Both graphs, where these nodes are kept."""
        tensors = [n for n in kept if n.op != "get_attr"]
        forward = self.part(self.primals, [*self.results, *tensors], self.writes)
        return forward, self.part([*tensors, *self.tangents], self.gradients, [])

    def part(self, inputs, outputs, writes):
        """The graph that computes outputs from inputs."""
        graph, copies = Graph(), {}
        for node in inputs:
            copies[node] = copy = graph.placeholder(node.name)
            copy.meta = dict(node.meta)
        needed = _needed([*outputs, *writes], stop=copies)
        for node in self.module.graph.nodes:
            if node in needed and node not in copies:
                copies[node] = graph.node_copy(node, lambda n: copies[n])
        graph.output(tuple(map_arg(list(outputs), lambda n: copies[n])))
        return GraphModule(self.module, graph)


def _needed(ends, stop=()):
    """The nodes that these are computed from, themselves among them."""
    found, waiting = set(), [node for node in ends if isinstance(node, cresset.fx.Node)]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            if node not in stop:
                waiting += node.all_input_nodes
    return found


def _schema(node):
    return getattr(node.target, "_schema", None) if node.op == "call_function" else None


def _is_write(node):
    schema = _schema(node)
    return schema is not None and schema.is_mutable


def _is_cheap(node):
    """Whether it may be computed again: pointwise operators and views."""
    schema = _schema(node)
    if schema is None or schema.is_mutable:
        return False
    is_view = any(result.alias_info is not None for result in schema.returns)
    return is_view or schema.op in definitions


def _bytes(node):
    value = node.meta["val"]
    return max(1, value.numel() * value.element_size())
