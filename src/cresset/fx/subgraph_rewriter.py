"""Replacing every occurrence of a pattern in a graph by something else."""

from collections import namedtuple

from ..nn.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Match = namedtuple("Match", "anchor nodes_map")
ReplacedPatterns = namedtuple("ReplacedPatterns", "anchor nodes_map replacements")


def _graph_of(thing):
    if isinstance(thing, GraphModule):
        return thing.graph
    return thing if isinstance(thing, Graph) else symbolic_trace(thing).graph


class _Matcher:
    """Looks for a pattern upwards from a node that may be its last."""

    def __init__(self, pattern, ignore_literals):
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.output = pattern.output_node()
        result = self.output.args[0]
        self.anchors = [result] if isinstance(result, Node) else list(result)
        self.ends = [anchor for anchor in self.anchors if all(user is self.output for user in anchor.users)]
        self.inputs = [node for node in pattern.nodes if node.op == "placeholder"]

    def at(self, node):
        """The map from the pattern's nodes to the graph's if what the pattern ends with first is `node`, else None."""
        found = {}
        if not self._fits(self.ends[0], node, found):
            return None
        for end in self.ends[1:]:
            found = found if end in found else self._joined(end, found, node.graph)
            if found is None:
                return None
        # What is inside must not be used from outside: it will be gone.
        inside = {found[p] for p in found if p.op != "placeholder"}
        results = {found[anchor] for anchor in self.anchors}
        for p, n in found.items():
            if (
                p.op != "placeholder"
                and p.op != "get_attr"
                and n not in results
                and any(user not in inside for user in n.users)
            ):
                return None
        return found

    def _joined(self, end, found, graph):
        """`found` with another end of the pattern, the first in the graph that goes with the rest; None without one."""
        for candidate in graph.nodes:
            tried = dict(found)
            if candidate not in found.values() and self._fits(end, candidate, tried):
                return tried
        return None

    def _fits(self, p, n, found):
        if isinstance(p, Node) != isinstance(n, Node):
            return isinstance(p, Node) and p.op == "placeholder" and self._bind(p, n, found)
        if not isinstance(p, Node):
            return self._same(p, n, found)
        if p.op == "placeholder":
            return self._bind(p, n, found)
        if p in found:
            return found[p] is n
        if p.op != n.op or p.target != n.target or len(p.args) != len(n.args) or set(p.kwargs) != set(n.kwargs):
            return False
        found[p] = n
        return all(self._same(a, b, found) for a, b in zip(p.args, n.args)) and all(
            self._same(p.kwargs[key], n.kwargs[key], found) for key in p.kwargs
        )

    def _bind(self, p, n, found):
        if p in found:
            return found[p] is n
        found[p] = n
        return True

    def _same(self, a, b, found):
        if isinstance(a, Node):
            return self._fits(a, b, found)
        if isinstance(a, (tuple, list)):
            return (
                isinstance(b, (tuple, list)) and len(a) == len(b) and all(self._same(x, y, found) for x, y in zip(a, b))
            )
        if isinstance(a, dict):
            return isinstance(b, dict) and set(a) == set(b) and all(self._same(a[key], b[key], found) for key in a)
        return not isinstance(b, Node) and (self.ignore_literals or type(a) is type(b) and a == b)


def replace_pattern(gm, pattern, replacement):
    """Replace every occurrence of `pattern` in the graph of `gm` by `replacement`; both are functions, modules or
    graphs with the same inputs. Returns the matches.

    >>> gm = cresset.fx.symbolic_trace(lambda x: cresset.relu(x) + 1)
    >>> _ = cresset.fx.replace_pattern(gm, lambda x: cresset.relu(x), lambda x: cresset.sigmoid(x))
    >>> [node.name for node in gm.graph.nodes]
    ['x', 'sigmoid', 'add', 'output']
    """
    return [Match(found.anchor, found.nodes_map) for found in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
):
    """replace_pattern where `match_filters` (functions of match, original graph and pattern graph) say which matches
    count.
    """
    if replacement is None and replacement_callback is None:
        raise AssertionError("replace_pattern_with_filters: give a replacement or a replacement_callback")
    if node_name_match:
        raise NotImplementedError(
            f"replace_pattern_with_filters: node_name_match={node_name_match!r} is not supported; test names in "
            "match_filters"
        )
    return _replace(gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback)


def _replace(gm, pattern, replacement, filters=(), ignore_literals=False, callback=None):
    graph = gm.graph
    pattern_graph = _graph_of(pattern)
    fixed = _graph_of(replacement) if replacement is not None else None
    matcher = _Matcher(pattern_graph, ignore_literals)
    replaced, gone = [], set()
    for node in list(graph.nodes):
        if node in gone or node.op in ("placeholder", "output"):
            continue
        found = matcher.at(node)
        if found is None or any(n in gone for n in found.values() if isinstance(n, Node)):
            continue
        match = Match(node, found)
        if not all(test(match, graph, pattern_graph) for test in filters):
            continue
        new_graph = fixed if fixed is not None else _graph_of(callback(match, graph, pattern_graph))
        results, made = _insert(graph, new_graph, matcher, found)
        for anchor, result in zip(matcher.anchors, results):
            found[anchor].replace_all_uses_with(result)
        for p in reversed(pattern_graph.nodes):
            if p.op not in ("placeholder", "output") and p in found and not found[p].users:
                gone.add(found[p])
                graph.erase_node(found[p])
        replaced.append(ReplacedPatterns(node, found, made))
    gm.recompile()
    if isinstance(replacement, Module):
        for node in fixed.nodes:
            if node.op in ("call_module", "get_attr"):
                _copy_attr(replacement, gm, node.target)
    return replaced


def _insert(graph, new_graph, matcher, found):
    """Copy the replacement to where the results of the pattern are first read, or behind them if nobody reads."""
    inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(inputs) != len(matcher.inputs):
        raise RuntimeError(
            f"replace_pattern: the pattern has {len(matcher.inputs)} inputs, the replacement {len(inputs)}"
        )
    val_map = {new: found[old] for new, old in zip(inputs, matcher.inputs)}
    anchors, place_of = [found[anchor] for anchor in matcher.anchors], list(graph.nodes).index
    readers = {reader for anchor in anchors for reader in anchor.users}.difference(found.values())
    made = []
    with graph.inserting_before(min(readers, key=place_of) if readers else max(anchors, key=place_of).next):
        for node in new_graph.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return ([result] if not isinstance(result, (tuple, list)) else list(result)), made
            if node not in val_map:
                val_map[node] = graph.node_copy(node, lambda n: val_map[n])
                made.append(val_map[node])
    raise RuntimeError("replace_pattern: the replacement has no output")
