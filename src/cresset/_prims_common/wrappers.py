"""Wrappers of functions."""

import inspect


def _maybe_remove_out_wrapper(fn):
    """The function behind a wrapper that gives it `out=`, if PyTorch's mark says that it has one; else itself."""
    return inspect.unwrap(fn, stop=lambda function: not hasattr(function, "_torch_decompositions_out_wrapper"))
