"""The one Graph: operators and control flow over values that are made once, with their types.

`jit` compiles source into it, recordings (jit.trace, export, onnx) write it, the interpreter and the printers read it.
"""

from .function import Argument, Function, FunctionSchema
from .graph import Block, Graph, Node, Use, Value
from .source import Source, SourceRange
from .types import *  # noqa: F403
from .types import __all__ as _types

__all__ = [
    "Argument",
    "Block",
    "Function",
    "FunctionSchema",
    "Graph",
    "Node",
    "Source",
    "SourceRange",
    "Use",
    "Value",
    *_types,
]
