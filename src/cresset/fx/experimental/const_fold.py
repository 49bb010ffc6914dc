"""Compute once what a graph computes from its own parameters alone: before the first run, instead of at each."""

import operator
import re

import cresset

from ...nn import Parameter, ParameterList
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _copy_attr, _get_attr
from ..node import map_arg

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule with another for what is constant, `const_subgraph_module`: that one runs once, before the first
    call or when `run_folding` is called, and its results are kept as an attribute that the graph reads.

    Args:
        const_subgraph: the graph without inputs that is run once; None if nothing is constant.
        fx_const_folded_attrs_name: the attribute that keeps what it gives, a Parameter or a ParameterList.
        device_for_folded_attrs: where a result that is a Python integer goes.
    """

    def __init__(
        self,
        root,
        graph,
        const_subgraph=None,
        fx_const_folded_attrs_name=None,
        device_for_folded_attrs="cuda",
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Compute the constants and keep them."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        kept = ParameterList([self._kept(one) for one in found]) if isinstance(found, tuple) else self._kept(found)
        setattr(self, self.fx_const_folded_attrs_name, kept)

    def _kept(self, value):
        if isinstance(value, int):
            value = cresset.tensor([float(value)], device=self.device_for_folded_attrs)
        return Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced, name):
    """A name like `name` that the module does not have, and that can be an attribute's.

    >>> module = cresset.fx.symbolic_trace(nn.Linear(2, 2))
    >>> cresset.fx.experimental.const_fold.get_unique_attr_name_in_module(module, "2 bias")
    '_2_bias'
    """
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """The module with all that depends on its own attributes alone taken out, to be computed once.

    Args:
        module: a module to trace, or a GraphModule.
        skip_folding_node_fn: called with a node; true leaves it, and what needs it, where it is.
        device_for_folded_attrs: where a constant goes that is a Python integer.

    >>> class Scaled(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = nn.Parameter(cresset.ones(2))
    ...     def forward(self, x):
    ...         return x * (self.weight.exp() + 1)
    >>> folded = cresset.fx.experimental.const_fold.split_const_subgraphs(Scaled())
    >>> [node.name for node in folded.graph.nodes]
    ['x', '_fx_const_folded_attrs', 'mul', 'output']
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    results = [
        node
        for node in traced.graph.nodes
        if node in constant and node.op != "get_attr" and any(user not in constant for user in node.users)
    ]
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    root = cresset.nn.Module()
    for node in traced.graph.nodes:
        if node.op in ("get_attr", "call_module"):
            _copy_attr(traced, root, node.target)
    setattr(root, name, Parameter(cresset.empty(0)) if len(results) == 1 else ParameterList())
    graph = _rest(traced.graph, constant, results, name)
    return FoldedGraphModule(root, graph, _constants(traced.graph, constant, results), name, device_for_folded_attrs)


def _constant_nodes(traced, skip):
    found = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure() or (skip and skip(node)):
            continue
        if node.op != "get_attr" and not found.issuperset(node.all_input_nodes):
            continue
        if isinstance(node.kwargs.get("fill_value"), cresset.SymInt):
            continue
        if node.op == "call_module" and _has_effects(_get_attr(traced, node.target)):
            continue
        found.add(node)
    return found


def _has_effects(module):
    """Whether a part that is a graph itself has a call that must not be left out."""
    if not isinstance(module, GraphModule):
        return False
    return any(
        node.is_impure()
        if node.op == "call_function"
        else node.op == "call_module" and _has_effects(_get_attr(module, node.target))
        for node in module.graph.nodes
    )


def _constants(graph, constant, results):
    """The graph of what is constant: no inputs, the results as one value or a tuple."""
    new, stands_for = Graph(), {}
    for node in graph.nodes:
        if node in constant:
            stands_for[node] = new.node_copy(node, stands_for.__getitem__)
    values = tuple(stands_for[node] for node in results)
    new.output(values[0] if len(values) == 1 else values)
    return new


def _rest(graph, constant, results, name):
    """The graph in which the results are read from the attribute."""
    new, stands_for = Graph(), {}
    new._codegen = graph._codegen
    placed = False
    for node in graph.nodes:
        if node in constant and node.op != "get_attr":
            continue
        if not placed and node.op != "placeholder":
            placed = True
            _read(new, results, name, stands_for)
        if node.op == "output":
            new.output(map_arg(node.args[0], stands_for.__getitem__), type_expr=node.type)
            continue
        stands_for[node] = new.node_copy(node, stands_for.__getitem__)
    new.eliminate_dead_code()
    return new


def _read(new, results, name, stands_for):
    kept = new.get_attr(name)
    for place, node in enumerate(results):
        read = kept if len(results) == 1 else new.call_function(operator.getitem, (kept, place))
        read.meta = dict(node.meta)
        stands_for[node] = read
