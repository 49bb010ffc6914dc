"""torch._dynamo: the names that programs use of PyTorch's tracer. Nothing is traced: see cresset.compiler."""

from ..compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)
from ..compiler.fullgraph import graph_break
from . import config, eval_frame, exc

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "exc",
    "graph_break", "is_compiling", "list_backends", "mark_dynamic",
    "mark_static", "mark_static_address", "maybe_mark_dynamic", "reset", "substitute_in_graph",
]  # fmt: skip


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Say that a dimension of a tensor will vary: code that runs eagerly takes any size."""


def maybe_mark_dynamic(t, index):
    """Say that a dimension of a tensor may vary."""


def mark_static(t, index=None):
    """Say that a dimension of a tensor will not vary."""


def mark_static_address(t, guard=False):
    """Say that a tensor keeps its address."""
