"""SubgraphMatcher for patterns that name some of their nodes: they give, last, a dict from names to values."""

from .... import pytree
from ..._symbolic_trace import _PytreeInfo
from .matcher_utils import SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Each match has `name_node_map`, from a name in the pattern's dict to the graph's node.

    Args:
        pattern_gm: a GraphModule that gives a tuple whose last part is the dict; the dict is taken out of it.
    """

    def __init__(
        self,
        pattern_gm,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph, node_name_match=""):
        """The occurrences, with their nodes by name."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return matches


def _split_to_graph_and_name_node_map(gm):
    """The pattern without its dict, in place; and the dict."""
    output = gm.graph.output_node()
    given = output.args[0]
    if getattr(gm, "_out_spec", None) is not None:
        given = pytree.tree_unflatten(list(given), gm._out_spec)
    if not isinstance(given, tuple) or len(given) < 2 or not isinstance(given[-1], dict):
        raise AssertionError("Expecting the pattern graph to return a tuple that ends in a dict from names to values")
    *rest, names = given
    leaves, spec = pytree.tree_flatten(rest)
    output.args = (leaves,)
    info = getattr(gm.graph._codegen, "pytree_info", None)
    if info is not None:
        gm.graph._codegen.pytree_info = _PytreeInfo(info.orig_args, info.in_spec, spec)
        gm._out_spec = spec
    gm.recompile()
    return gm, names
