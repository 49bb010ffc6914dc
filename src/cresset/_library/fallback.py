"""What autograd does with operators that were given kernels but no derivative: by a `Library`, or by C++.

The kernel is recorded as it runs, so that one that is made of operators has a gradient. Backward through such an
operator says that nobody registered one, because a kernel that leaves autograd gives none or a wrong one.
"""

import warnings

from .._native import Tensor
from ..pytree import tree_flatten, tree_leaves, tree_unflatten

_MODES = ("nothing", "warn", "error")


class _Setting:
    """Whether backward says so: "nothing", "warn", or "error"."""

    mode = "warn"


def get_mode():
    """What backward through an operator without a derivative does: "nothing", "warn" or "error"."""
    return _Setting.mode


def set_mode(mode):
    """Choose it for this process."""
    if mode not in _MODES:
        raise RuntimeError(f'AutogradFallback: mode must be one of "nothing", "warn" and "error", got {mode!r}')
    _Setting.mode = mode


def applies(op):
    """Whether an operator has kernels, and nobody said what its derivative is."""
    return op._definition is None and op._backward is None


def run(op, values):
    """What the operator gives for arguments of which one requires a gradient."""
    result = op._run(values, recorded=True)
    if _Setting.mode == "nothing" or not op._schema.returns:
        return result
    parts = [result] if len(op._schema.returns) == 1 else list(result)
    flat, spec = tree_flatten(parts)
    written = [r.is_written for r, part in zip(op._schema.returns, parts, strict=True) for _ in tree_leaves(part)]
    plain = []  # places of the results without a history
    for place, (leaf, is_written) in enumerate(zip(flat, written, strict=True)):
        if not isinstance(leaf, Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
            continue
        if leaf.requires_grad:
            leaf.register_hook(lambda _: _say(op))
            if is_written and leaf._base is not None and leaf._base.requires_grad:
                leaf._base.register_hook(lambda _: _say(op))
        elif not is_written:
            plain.append(place)
    if plain:
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
        given = _without_derivative(op, [flat[place] for place in plain]).apply(*tensors)
        for place, leaf in zip(plain, given, strict=True):
            flat[place] = leaf
    parts = tree_unflatten(flat, spec)
    return parts[0] if len(op._schema.returns) == 1 else tuple(parts)


def _say(op):
    words = (
        f"{op.name()}: an autograd kernel was not registered to the Autograd key(s), but backward goes through it: the "
        "gradients may be missing or wrong. Give the operator a formula with torch.library.register_autograd; one that "
        "is made of differentiable operators alone is registered with the key CompositeImplicitAutograd"
    )
    if _Setting.mode == "error":
        raise RuntimeError(words)
    if _Setting.mode == "warn":
        warnings.warn(words, UserWarning, stacklevel=2)


def _without_derivative(op, results):
    from ..autograd.function import Function

    class WarnNotImplemented(Function):
        """The history of results that the kernel did not record: it leads nowhere, and says so."""

        @staticmethod
        def forward(ctx, *tensors):
            return tuple(results)

        @staticmethod
        def backward(ctx, *grads):
            _say(op)
            return (None,) * len(ctx.needs_input_grad)

    return WarnNotImplemented
