"""SubgraphMatcher: where a pattern, itself a graph, occurs in a graph.

The search begins at the ends of the pattern, the nodes that only its output reads: each is tried on every node of the
graph, and from there both graphs are walked upwards together. A node has one maker and many readers, so upwards there
is one way only. Of several ends, each must find its place such that the common nodes agree.
"""

import dataclasses

import cresset

from ...graph_module import _get_attr
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclasses.dataclass
class InternalMatch:
    """One occurrence: `nodes_map` leads from the pattern's nodes to the graph's."""

    anchors: list
    nodes_map: dict = dataclasses.field(default_factory=dict)
    placeholder_nodes: list = dataclasses.field(default_factory=list)
    returning_nodes: list = dataclasses.field(default_factory=list)
    name_node_map: dict = dataclasses.field(default_factory=dict)


class SubgraphMatcher:
    """Finds the occurrences of a pattern.

    Args:
        pattern: a graph.
        match_output: what the pattern gives is what the graph gives.
        match_placeholder: its inputs stand for inputs; otherwise for any value.
        remove_overlapping_matches: of two occurrences that share a node only the first counts.
        ignore_literals: numbers and other constants may differ.

    >>> from cresset.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> pattern = cresset.fx.symbolic_trace(lambda x: cresset.relu(x) + 1)
    >>> graph = cresset.fx.symbolic_trace(lambda x: cresset.relu(x * 2) + 1)
    >>> [match] = SubgraphMatcher(pattern.graph).match(graph.graph)
    >>> match.returning_nodes, match.placeholder_nodes
    ([add], [mul])
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(node.op != "output" and not node.is_impure() and not node.users for node in pattern.nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = list(output.all_input_nodes)
        ends = [node for node in self.pattern_returning_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph, node_name_match=""):
        """The occurrences in a graph (InternalMatch). Nodes inside of one are read inside only, but for those that the
        pattern gives.

        Args:
            node_name_match: text in the name of a node that may stand for a pattern's end, whatever it computes.
        """
        from .fuser_utils import validate_partition

        found = []
        places = [
            (anchor, candidates)
            for anchor in self.pattern_anchors
            if (candidates := [node for node in graph.nodes if self._alike(anchor, node, node_name_match)])
        ]
        if places:
            self._search(places, {}, node_name_match, found)
        matches = [
            match
            for match in found
            if self._is_contained(match.nodes_map) and validate_partition(_computed(match.nodes_map))
        ]
        return _apart(matches) if self.remove_overlapping_matches else matches

    def _search(self, places, nodes_map, name, found):
        if not places:
            match = InternalMatch(self.pattern_anchors, nodes_map)
            match.placeholder_nodes = [nodes_map[node] for node in self.pattern_placeholder_nodes]
            match.returning_nodes = [nodes_map[node] for node in self.pattern_returning_nodes]
            found.append(match)
            return
        (anchor, candidates), *rest = places
        for candidate in candidates:
            tried = dict(nodes_map)
            if self._match_nodes(anchor, candidate, tried, name):
                self._search(rest, tried, name, found)

    def _alike(self, pn, gn, name=""):
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if name and name in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        return _same_kind(pn, gn) if pn.op == "get_attr" else pn.target == gn.target

    def _match_nodes(self, pn, gn, nodes_map, name=""):
        if pn in nodes_map:
            return nodes_map[pn] is gn
        if any(gn is taken for taken in nodes_map.values()) or not self._alike(pn, gn, name):
            return False
        nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        of_both = _arguments(pn, gn)
        return of_both is not None and self._match_values(*of_both, nodes_map)

    def _match_values(self, pattern, values, nodes_map):
        return len(pattern) == len(values) and all(
            self._match_value(pn, gn, nodes_map) for pn, gn in zip(pattern, values, strict=True)
        )

    def _match_value(self, pn, gn, nodes_map):
        if isinstance(pn, Node) and isinstance(gn, Node):
            return self._match_nodes(pn, gn, nodes_map)
        if isinstance(pn, (list, tuple)) and isinstance(gn, (list, tuple)):
            return self._match_values(pn, gn, nodes_map)
        if isinstance(pn, Node) and pn.op == "placeholder":
            return nodes_map.setdefault(pn, gn) == gn or self.ignore_literals
        return self.ignore_literals or (type(gn) is type(pn) and gn == pn)

    def _is_contained(self, nodes_map):
        inside = {gn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            pn.op == "placeholder" or pn in self.pattern_returning_nodes or inside.issuperset(gn.users)
            for pn, gn in nodes_map.items()
        )


def _same_kind(pn, gn):
    """Whether two attributes are tensors of one type; what they hold does not matter."""
    ours, theirs = (_get_attr(node.graph.owning_module, node.target) for node in (pn, gn))
    if type(ours) is not type(theirs):
        return False
    if not isinstance(ours, cresset.Tensor):
        raise RuntimeError(f"Unsupported type {ours} when matching attributes")
    return True


def _arguments(pn, gn):
    """The arguments of both nodes in one order; None where they cannot be compared."""
    if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
        return tuple([*node.args, *node.kwargs.values()] for node in (pn, gn))
    schema = getattr(pn.target, "_schema", None) if pn.op == "call_function" else None
    return None if schema is None else tuple(_by_schema(node, schema) for node in (pn, gn))


def _by_schema(node, schema):
    return [
        node.kwargs[argument.name]
        if argument.name in node.kwargs
        else node.args[place]
        if not argument.kwarg_only and place < len(node.args)
        else argument.default_value
        for place, argument in enumerate(schema.arguments)
    ]


def _computed(nodes_map):
    return [gn for pn, gn in nodes_map.items() if pn.op not in ("placeholder", "output")]


def _apart(matches):
    """The matches that share no node with one before them."""
    kept, taken = [], set()
    for match in matches:
        nodes = _computed(match.nodes_map)
        if taken.isdisjoint(nodes):
            kept.append(match)
            taken.update(nodes)
    return kept
