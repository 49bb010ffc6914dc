"""Replacing every occurrence of a pattern in a graph by something else."""

from collections import namedtuple

from ..nn.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph, _has_attribute
from .graph_module import GraphModule, _copy_attr
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Match = namedtuple("Match", "anchor nodes_map")
ReplacedPatterns = namedtuple("ReplacedPatterns", "anchor nodes_map replacements")


def _graph_of(thing):
    if isinstance(thing, GraphModule):
        return thing.graph
    return thing if isinstance(thing, Graph) else symbolic_trace(thing).graph


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
    return _replace(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match)


def _replace(gm, pattern, replacement, filters=(), ignore_literals=False, callback=None, name=""):
    from .passes.utils.matcher_utils import SubgraphMatcher  # which few programs need

    if replacement is None and callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    fixed = _graph_of(replacement) if replacement is not None else None
    matches = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals).match(graph, node_name_match=name)
    matches = [match for match in matches if all(test(match, graph, pattern_graph) for test in filters or ())]
    replaced, now = [], {}  # a node that was replaced -> what stands for it
    for match in matches:
        new_graph = fixed if callback is None else _graph_of(callback(match, graph, pattern_graph))
        for key, node in match.nodes_map.items():
            if isinstance(node, Node):
                match.nodes_map[key] = now.get(node, node)
        match.placeholder_nodes = [now.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
        results, made = _insert(graph, new_graph, match)
        for old, new in zip(match.returning_nodes, results, strict=True):
            old.replace_all_uses_with(new)
            now[old] = new
        for node in reversed(pattern_graph.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        replaced.append(ReplacedPatterns(match.anchors[0], match.nodes_map, made))
    gm.recompile()
    if isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
        for node in fixed.nodes:
            if node.op in ("call_module", "get_attr") and not _has_attribute(gm, node.target):
                _copy_attr(replacement, gm, node.target)
    return replaced


def _insert(graph, new_graph, match):
    """Copy the replacement to where the results of the pattern are first read, or behind them if nobody reads."""
    inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(match.placeholder_nodes)} inputs, the replacement {len(inputs)}"
        )
    stands_for = dict(zip(inputs, match.placeholder_nodes, strict=True))
    readers = {reader for node in match.returning_nodes for reader in node.users}
    place_of = list(graph.nodes).index
    before = min(readers, key=place_of) if readers else max(match.returning_nodes, key=place_of).next
    with graph.inserting_before(before):
        result = graph.graph_copy(new_graph, stands_for)
    results = (result,) if isinstance(result, Node) else tuple(result)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern gives {len(match.returning_nodes)} values, the replacement {len(results)}"
        )
    return results, [node for new, node in stands_for.items() if new not in inputs]
