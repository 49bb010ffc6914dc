"""Keeping gradients from growing too large."""

import warnings

import cresset

from ...ops import foreach


def _gradients(parameters):
    if isinstance(parameters, cresset.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _norms_together(tensors, norm_type):
    """The norm of each tensor, as one tensor on the device of the first."""
    norms = foreach._norms(tensors, norm_type)
    if norms is not None:
        return norms
    return cresset.stack([norm.to(tensors[0].device) for norm in cresset._foreach_norm(tensors, norm_type)])


@cresset.no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together, as if they were one vector.

    >>> nn.utils.get_total_norm([cresset.tensor([3.0]), cresset.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, cresset.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return cresset.tensor(0.0)
    total = _norms_together(tensors, norm_type).norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@cresset.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale all gradients, whose norm together is `total_norm`, so that it is at most `max_norm`."""
    grads = _gradients(parameters)
    # Clamped instead of compared: no need to wait for the value on another device.
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    if all(grad.device == factor.device for grad in grads):
        if grads:
            cresset._foreach_mul_(grads, factor)
        return
    for grad in grads:
        grad.mul_(factor.to(grad.device))


@cresset.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients so that their norm together is at most `max_norm`; returns the norm before.

    Args:
        parameters: a tensor, or several; those without gradient do not count.
        error_if_nonfinite: raise an error if the norm is infinite or nan.

    >>> p = nn.Parameter(cresset.zeros(2))
    >>> p.grad = cresset.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_(p, 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if not isinstance(parameters, cresset.Tensor):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The older name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@cresset.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp every element of every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    grads = _gradients(parameters)
    if grads:
        cresset._foreach_clamp_min_(grads, -clip_value)
        cresset._foreach_clamp_max_(grads, clip_value)
