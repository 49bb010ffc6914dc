"""How functions of linalg are called: with tensors, and with out=, into which results are copied."""

import functools
import inspect

import cresset

from ..ops.registry import _with_out

# The parameters that are tensors, in all functions of linalg.
_TENSORS = {"A", "B", "LD", "LU", "input", "other", "pivots", "tau", "x", "y"}


def with_tensors(definition):
    """Let a function raise TypeError if an argument that must be a tensor is something else."""
    names = [(place, name) for place, name in enumerate(inspect.signature(definition).parameters) if name in _TENSORS]

    @functools.wraps(definition)
    def checked(*args, **kwargs):
        for place, name in names:
            value = args[place] if place < len(args) else kwargs.get(name, args)
            if value is not args and not isinstance(value, cresset.Tensor):
                kind = value.__class__.__name__
                raise TypeError(f"linalg_{definition.__name__}(): argument '{name}' must be Tensor, not {kind}")
        return definition(*args, **kwargs)

    return checked


def with_out(definition=None, *, casts=False, result="result"):
    """Give a function the keyword out=, and check that tensors are tensors. `casts`: out= may have another dtype, if
    the result can be cast to it; `result`: what an error calls a single result.
    """
    if definition is None:
        return functools.partial(with_out, casts=casts, result=result)
    return _with_out(with_tensors(definition), "linalg." + definition.__name__, casts, result)


def identity_in_place_of(A):
    """Identity matrices of the shape of A that count as made from A: with a gradient, of zeros, if A has one."""
    identity = cresset.eye(A.size(-2), A.size(-1), dtype=A.dtype, device=A.device)
    return cresset.where(cresset.ones((), dtype=cresset.bool, device=A.device), identity, A)
