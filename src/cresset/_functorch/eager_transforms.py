"""Derivatives as functions, by the names they have in PyTorch's file of them."""

from ..func.derivatives import checked_argnums, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func.vmapping import debug_unwrap, functionalize

__all__ = [
    "debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip


def _as_tuple(val):
    """One value as a tuple; a tuple as it is."""
    return val if isinstance(val, tuple) else (val,)


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments at `argnums`, as a tuple; the one itself, if it is one number and no tuple is asked for."""
    if isinstance(argnums, int) and not as_tuple:
        return args[checked_argnums(argnums, len(args))[0]]
    return tuple(args[place] for place in checked_argnums(argnums, len(args)))
