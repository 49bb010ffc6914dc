"""Compile parts of a graph: those that are marked, the rest runs as it is."""

import functools

import cresset

from .split_module import split_module

__all__ = ["regional_inductor"]

MARK = "compile_with_inductor"  # in node.meta["custom"]


def _is_marked(node):
    return MARK in (node.meta.get("custom") or {})


def regional_inductor(gm, *example_args):
    """The graph module with its marked regions compiled: runs of nodes whose `meta["custom"]` has
    "compile_with_inductor".

    Args:
        gm: a graph module, which is left as it was.
        example_args: inputs; with some, each region is compiled for them now, otherwise at its first call.
    """
    regions, number, before = {}, 0, None
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        marked = _is_marked(node)
        if before is not None and marked != before:
            number += 1
        regions[node], before = (number, marked), marked
    chosen = {f"submod_{number}" for number, marked in regions.values() if marked}
    if not chosen:
        return gm
    made = split_module(gm, gm, lambda node: regions[node][0])
    for name in sorted(chosen):
        setattr(made, name, cresset.compile(getattr(made, name)))
    if example_args:
        with cresset.no_grad():
            made(*(arg.detach() if isinstance(arg, cresset.Tensor) else arg for arg in example_args))
    return made


def _dummy_wrapper(fn):
    """A function that calls another one and does nothing else."""

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner
