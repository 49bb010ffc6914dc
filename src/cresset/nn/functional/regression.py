"""Losses between numbers: squared, absolute and what lies between, each one fused elementwise operator and a
reduction."""

import warnings

import cresset

from ... import _native
from ...ops.autocast import autocast
from .reduction import reduce_loss, resolve, weighted_mean


def _broadcast_with_warning(input, target):
    """Both with one shape, and so with equal rights when their dtypes are promoted."""
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=4,  # beyond the loss and its autocast
    )
    return cresset.broadcast_tensors(input, target)


def _check_weight(input, weight):
    if weight.shape != input.shape:
        raise ValueError(f"Weights and input must have the same size; they are {weight.shape} and {input.shape}")


@autocast("float32")
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference, averaged unless `reduction` says otherwise; a `weight` makes it a weighted mean.

    >>> F.mse_loss(cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0]))
    tensor(5.)
    """
    if input.shape != target.shape:
        input, target = _broadcast_with_warning(input, target)
    reduction = resolve(reduction, size_average, reduce)
    loss = cresset.mse_elementwise(input, target)
    if weight is None:
        return reduce_loss(loss, reduction, "MseLossBackward0")
    _check_weight(input, weight)
    return weighted_mean(loss * weight, weight, reduction)


@autocast("float32")
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference, averaged unless `reduction` says otherwise; a `weight` makes it a weighted mean.

    >>> F.l1_loss(cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0]))
    tensor(2.)
    """
    if input.shape != target.shape:
        input, target = _broadcast_with_warning(input, target)
    reduction = resolve(reduction, size_average, reduce)
    # One operator keeps both for backward, which the difference need not.
    fits = all(x.is_floating_point() and not x.is_inference() for x in (input, target))
    loss = cresset.l1_elementwise(input, target) if fits else (input - target).abs()
    if weight is None:
        return reduce_loss(loss, reduction)
    _check_weight(input, weight)
    return weighted_mean(loss * weight, weight, reduction)


@autocast("float32")
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """|x - target| - beta / 2, but the parabola (x - target)^2 / (2 beta) where the difference is below `beta`.

    >>> F.smooth_l1_loss(cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0]), reduction="none")
    tensor([0.5000, 2.5000])
    """
    if input.shape != target.shape:
        input, target = _broadcast_with_warning(input, target)
    reduction = resolve(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}.")
    if not beta:
        return reduce_loss(cresset.l1_elementwise(input, target), reduction)
    if isinstance(beta, int):
        beta = float(beta)  # integers of any size
    return reduce_loss(cresset.smooth_l1_elementwise(input, target, beta), reduction, "SmoothL1LossBackward0")


@autocast("float32")
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """The parabola (x - target)^2 / 2 where the difference is at most `delta`, continued by straight lines.

    >>> F.huber_loss(cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0]), reduction="none", delta=2.0)
    tensor([0.5000, 4.0000])
    """
    if input.shape != target.shape:
        input, target = _broadcast_with_warning(input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got {delta}.")
    loss = cresset.huber_elementwise(input, target, delta)
    if loss.dtype != input.dtype:  # unlike other losses, this one has the dtype of the input
        _native.check_cast("huber_loss", loss.dtype, input.dtype)
        loss = loss.to(input.dtype)
    if weight is None:
        return reduce_loss(loss, reduction, "HuberLossBackward0")
    _check_weight(input, weight)
    # Unlike mse_loss and l1_loss, PyTorch's mean here divides by the number of elements.
    return reduce_loss(loss * weight, reduction)
