"""torch._dynamo: the names that programs use of PyTorch's tracer. Nothing is traced by default: see
cresset.compiler."""

from ..compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    reset,
    substitute_in_graph,
)
from ..compiler.backends import find as lookup_backend
from ..compiler.backends import names as list_backends
from ..compiler.backends import register as register_backend
from ..compiler.explaining import explain
from ..compiler.fullgraph import graph_break
from . import backends, config, eval_frame, exc, testing, utils
from .eval_frame import is_dynamo_supported

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "backends", "config", "disable", "disallow_in_graph",
    "eval_frame", "exc", "explain", "forbid_in_graph", "graph_break", "is_compiling",
    "is_dynamo_supported", "list_backends", "lookup_backend",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "optimize_assert",
    "register_backend", "reset", "run", "substitute_in_graph", "testing", "utils",
]  # fmt: skip


def optimize(backend="inductor", *, nopython=False, disable=False, dynamic=None, recompile_limit=None):
    """A decorator: `compile` with these arguments, under the names of older programs (`nopython` is `fullgraph`).

    >>> cresset._dynamo.optimize("eager")(lambda x: x + 1)(cresset.ones(1))
    tensor([2.])
    """
    from ..compiler import compile

    return lambda model: compile(
        model, backend=backend, fullgraph=nopython, disable=disable, dynamic=dynamic, recompile_limit=recompile_limit
    )


def optimize_assert(backend, *, dynamic=None):
    """`optimize` that insists on a single graph."""
    return optimize(backend, nopython=True, dynamic=dynamic)


def run(fn=None):
    """A function that uses what is compiled, and compiles nothing: it is given back as it is."""
    return fn if fn is not None else lambda fn: fn


def disallow_in_graph(fn):
    """Let a function (or each of a list) compute at once, also in a compiled region."""
    return [disable(one) for one in fn] if isinstance(fn, (list, tuple)) else disable(fn)


def forbid_in_graph(fn):
    """Mark a function (or a list of them) that no graph may hold; it is given back as it is."""
    for one in fn if isinstance(fn, (list, tuple)) else [fn]:
        if not callable(one):
            raise AssertionError(f"forbid_in_graph: expected a function, got {type(one).__name__}")
        one._dynamo_forbidden = True
    return fn


def _check_dimension(who, t, index):
    for one in index if isinstance(index, (list, tuple)) else [index]:
        if not isinstance(one, int) or not -t.dim() <= one < t.dim():
            raise AssertionError(f"{who}: the tensor has {t.dim()} dimensions, there is none {one!r}")


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Say that a dimension of a tensor will vary: compiled code takes any size."""
    _check_dimension("mark_dynamic", t, index)


def maybe_mark_dynamic(t, index):
    """Say that a dimension of a tensor may vary."""
    _check_dimension("maybe_mark_dynamic", t, index)


def mark_static(t, index=None):
    """Say that a dimension of a tensor will not vary."""
    if index is not None and not isinstance(t, type):
        _check_dimension("mark_static", t, index)


def mark_static_address(t, guard=False):
    """Say that a tensor keeps its address."""
