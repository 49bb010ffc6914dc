"""Compute once what a graph computes twice, from the same values by the same operator."""

import cresset

from .... import Graph, GraphModule
from ....node import Node, map_arg
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = (
    "_fused_dropout", "_standard_gamma", "bernoulli", "binomial", "dropout", "multinomial", "native_dropout", "normal",
    "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rrelu",
)  # fmt: skip
_IN_PLACE = ("add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_")


def get_CSE_banned_ops():  # noqa: N802  PyTorch's name
    """The operators of aten that give something else at every call, or write: those are computed as often as they
    stand.
    """
    return {getattr(cresset.ops.aten, name) for name in (*_RANDOM, *_IN_PLACE)}


class CSEPass(PassBase):
    """Give a graph module in which equal calls are made once. For graphs of functions: writes are not looked for.

    Args:
        banned_ops: operators (`torch.ops.aten.add`) whose calls all stay.

    >>> from cresset.fx.experimental.proxy_tensor import make_fx
    >>> graph = make_fx(lambda x: x.sin() + x.sin())(cresset.ones(2))
    >>> result = CSEPass()(graph)
    >>> result.modified, len(graph.graph.nodes) - len(result.graph_module.graph.nodes)
    (True, 1)
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module):
        """The module with what remains; whether anything went."""
        graph, made, stands_for, modified = Graph(), {}, {}, False
        for node in graph_module.graph.nodes:
            if node.op == "output":
                graph.output(map_arg(node.args[0], stands_for.__getitem__))
                continue
            key = self._key(node, stands_for)
            if key is not None and key in made:
                stands_for[node] = made[key]
                modified = True
                continue
            stands_for[node] = graph.node_copy(node, stands_for.__getitem__)
            if key is not None:
                made[key] = stands_for[node]
        return PassResult(GraphModule(graph_module, graph), modified)

    def _key(self, node, stands_for):
        """What two equal calls have in common; None for what is no call, or not to be shared."""
        if node.op in ("placeholder", "get_attr"):
            return None
        if node.target in self.banned_ops or getattr(node.target, "overloadpacket", None) in self.banned_ops:
            return None
        flat, spec = cresset.utils._pytree.tree_flatten((node.args, node.kwargs))
        values = [stands_for[leaf] if isinstance(leaf, Node) else leaf for leaf in flat]
        key = (node.op, node.target, str(spec), *((type(value), value) for value in values))
        try:
            hash(key)
        except TypeError:
            return None
        return key
