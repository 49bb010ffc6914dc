"""One product in the place of several with the same second factor: A C and B C are rows of [A; B] C."""

import operator

import cresset

from .._symbolic_trace import symbolic_trace
from ..passes.tools_common import legalize_graph
from ..proxy import Proxy

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result, inputs):
    """The rows of a joined product that belong to each of the first factors."""
    rows = [0] * len(inputs) if isinstance(result, Proxy) else [x.shape[0] for x in inputs]
    return cresset.split(result, rows)


def may_depend_on(a, b, search_depth=6):
    """Whether node `a` needs node `b`, as far as `search_depth` steps show; beyond them it might."""
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    return search_depth == 0 or any(may_depend_on(used, b, search_depth - 1) for used in a.all_input_nodes)


def are_nodes_independent(nodes):
    """Whether none of the nodes needs another."""
    return not any(may_depend_on(a, b) for a in nodes for b in nodes if a is not b)


def merge_matmul(in_mod):
    """A GraphModule of the module in which products of matrices with the same second factor are one.

    >>> class Two(nn.Module):
    ...     def forward(self, a, b, c):
    ...         return a.mm(c), cresset.matmul(a, c) + cresset.matmul(b, c)
    >>> merged = cresset.fx.experimental.merge_matmul.merge_matmul(Two())
    >>> sum(node.target is cresset.matmul for node in merged.graph.nodes)
    1
    """
    gm = symbolic_trace(in_mod)
    by_factor = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is cresset.matmul and len(node.args) == 2:
            factor = node.args[1]
            by_factor.setdefault(factor.target if factor.op == "get_attr" else factor, []).append(node)
    for products in by_factor.values():
        if len(products) > 1 and are_nodes_independent(products):
            _merge(gm, products)
    gm.recompile()
    gm.graph.lint()
    return gm


def _merge(gm, products):
    graph, first = gm.graph, [product.args[0] for product in products]
    rows = graph.call_function(cresset.cat, (first,), {})
    product = graph.call_function(cresset.matmul, (rows, products[0].args[1]), {})
    parts = graph.call_function(split_result_tensors, (product, first), {})
    for place, old in enumerate(products):
        old.replace_all_uses_with(graph.call_function(operator.getitem, (parts, place), {}))
        graph.erase_node(old)
    legalize_graph(gm)  # what is new stands at the end, behind its readers
