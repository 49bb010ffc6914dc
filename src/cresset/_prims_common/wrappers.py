"""Wrappers of functions."""

import inspect

import cresset

_CONSTRUCTORS = {"bool": bool, "int": int, "float": float, "complex": complex}


def _maybe_convert_to_dtype(a, dtype):
    """Tensors, numbers and sequences of them in another dtype; None stays."""
    if isinstance(a, cresset.Tensor):
        return a.to(dtype)
    if a is None:
        return None
    if isinstance(a, (bool, int, float, complex)):
        kind = "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "int"
        return _CONSTRUCTORS["bool" if dtype == cresset.bool else kind](a)
    if isinstance(a, (tuple, list)):
        return tuple(_maybe_convert_to_dtype(part, dtype) for part in a)
    raise ValueError(f"Expected a tensor, a number or a sequence, got a {type(a).__name__}")


def _maybe_remove_out_wrapper(fn):
    """The function behind a wrapper that gives it `out=`, if PyTorch's mark says that it has one; else itself."""
    return inspect.unwrap(fn, stop=lambda function: not hasattr(function, "_torch_decompositions_out_wrapper"))
