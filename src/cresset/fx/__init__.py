"""torch.fx: programs as graphs of nodes, to read, change and run. `symbolic_trace` makes one, `GraphModule` runs it."""

import importlib as _importlib

from ..show import missing_names as _missing_names
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap  # noqa: F401
from .graph import CodeGen, Graph  # noqa: F401
from .graph_module import GraphModule  # noqa: F401
from .interpreter import Interpreter, Transformer  # noqa: F401
from .node import Node, has_side_effect, map_arg  # noqa: F401
from .proxy import Proxy, TraceError  # noqa: F401
from .subgraph_rewriter import replace_pattern  # noqa: F401

_LATER = {
    "_graph_pickler", "_lazy_graph_module", "experimental", "operator_schemas", "passes", "tensor_type", "traceback"
}  # fmt: skip
_missing = _missing_names.of(__name__)


def __getattr__(name):
    return _importlib.import_module("." + name, __name__) if name in _LATER else _missing(name)
