"""One way to write each call of a graph: arguments by name, operators in place of functions that do the same."""

import operator

import cresset

from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from .schema_type_annotation import AnnotateTypesWithSchema

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Makes a GraphModule in which the arguments of functions and layers stand by name, with the defaults written out.

    Args:
        normalize_to_only_use_kwargs: also those that must be given stand by name.

    >>> from cresset.fx.experimental.normalize import NormalizeArgs
    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.clamp(x, 0.0))
    >>> [dict(node.kwargs) for node in NormalizeArgs(traced).transform().graph.nodes if node.op == "call_function"]
    [{'input': x, 'min': 0.0, 'max': None}]
    """

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.node_map = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def type_of(value):
            return n.meta.get("type") if isinstance(value, Node) else type(value)

        if n.op == "call_function":
            arg_types = tuple(create_type_hint(kind) for kind in map_aggregate(n.args, type_of))
            made = self.call_function(n.target, args, kwargs, arg_types, {k: type_of(v) for k, v in n.kwargs.items()})
        else:
            made = super().run_node(n)
        if n.op != "output":
            self.node_map[made] = n
            made.node.meta, made.node.type = n.meta, n.type
        return made

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        normal = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        if normal is None:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", target, normal.args, normal.kwargs)

    def call_module(self, target, args, kwargs):
        normal = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(normal or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """Makes a GraphModule in which torch.add(x, y) is x + y, and so on.

    >>> from cresset.fx.experimental.normalize import NormalizeOperators
    >>> traced = cresset.fx.symbolic_trace(lambda x: cresset.add(x, 1))
    >>> NormalizeOperators(traced).transform().code.strip().splitlines()[1].strip()
    'add = x + 1;  x = None'
    """

    binary_magic_method_remap = {  # noqa: RUF012  a table that programs read
        cresset.add: operator.add,
        cresset.mul: operator.mul,
        cresset.sub: operator.sub,
        cresset.div: operator.truediv,
        cresset.floor_divide: operator.floordiv,
        cresset.remainder: operator.mod,
        cresset.eq: operator.eq,
        cresset.ne: operator.ne,
        cresset.lt: operator.lt,
        cresset.le: operator.le,
        cresset.gt: operator.gt,
        cresset.ge: operator.ge,
    }

    def call_function(self, target, args, kwargs):
        if target in self.binary_magic_method_remap and len(args) == 2 and not kwargs:
            return super().call_function(self.binary_magic_method_remap[target], args, {})
        return super().call_function(target, args, kwargs)
