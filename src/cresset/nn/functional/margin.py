"""Losses that ask for a margin: between classes, between pairs, between an anchor and its like."""

import cresset

from ...ops.autocast import autocast
from ...ops.batches import all_samples
from .distance import pairwise_distance
from .reduction import check_reduction, reduce_loss, resolve


@autocast("float32")
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target x)) for targets 1 and -1.

    >>> F.soft_margin_loss(cresset.tensor([0.0]), cresset.tensor([1.0]))
    tensor(0.6931)
    """
    if not isinstance(target, cresset.Tensor):
        raise TypeError(f"soft_margin_loss(): argument 'target' must be Tensor, not {type(target).__name__}")
    loss = cresset.soft_margin_elementwise(input, target)
    if loss.dtype != input.dtype and input.is_floating_point():  # the target does not promote
        loss = loss.to(input.dtype)
    return reduce_loss(loss, resolve(reduction, size_average, reduce), "SoftMarginLossBackward0")


@autocast("float32")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> F.hinge_embedding_loss(cresset.tensor([0.5, 0.25]), cresset.tensor([1.0, -1.0]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    reduction = resolve(reduction, size_average, reduce)
    zero = cresset.zeros((), dtype=input.dtype, device=input.device)
    margin = cresset.tensor(margin, dtype=input.dtype, device=input.device)  # rounded to the dtype, as PyTorch does
    far = cresset.where(target != 1, (margin - input).clamp_min(0), zero)
    return reduce_loss(far + cresset.where(target != -1, input, zero), reduction)


@autocast("float32")
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, margin - target (x1 - x2)): x1 should rank higher where the target is 1, lower where it is -1.

    >>> F.margin_ranking_loss(cresset.tensor([1.0]), cresset.tensor([3.0]), cresset.tensor([1.0]))
    tensor(2.)
    """
    reduction = resolve(reduction, size_average, reduce)
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduce_loss((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


def _check_scores(who, input):
    if input.ndim > 2 or input.numel() == 0 and (input.ndim == 0 or input.size(-1) == 0):
        raise RuntimeError(
            f"{who}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


@autocast("float32")
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """sum over the other classes i of max(0, margin - x[target] + x[i])^p, divided by the number of classes.

    Args:
        input: scores (C) or (N, C).
        target: the classes, () or (N).
        p: 1 or 2.
        weight: how much each class counts.
    """
    reduction = resolve(reduction, size_average, reduce)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    _check_scores("multi_margin_loss", input)
    scores = input.reshape(1, -1) if input.ndim < 2 else input
    samples, classes = scores.shape
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"multi_margin_loss: weight must be one-dimensional, got shape {list(weight.shape)}")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(
            f"multi_margin_loss: inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    if target.ndim > 1 or target.numel() != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            "size). "
            f"Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if target.dtype is not cresset.int64:
        raise RuntimeError(f"multi_margin_loss: expected scalar type Long but found {str(target.dtype).split('.')[-1]}")
    index = target.reshape(-1, 1)
    if index.device.type == "cpu" and bool(all_samples((index < 0) | (index >= classes)).any()):
        raise RuntimeError(f"multi_margin_loss: target out of range; the {classes} classes are numbered from 0")
    loss = cresset._multi_margin_loss(scores, index.reshape(-1), int(p), float(margin), weight)
    loss = loss.reshape(()) if input.ndim < 2 and target.ndim == 0 else loss
    return reduce_loss(loss, reduction, "MultiMarginLossBackward0")


@autocast("float32")
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """sum of max(0, 1 - x[j] + x[i]) over the target classes j and the others i, divided by the number of classes.

    Args:
        input: scores (C) or (N, C).
        target: shaped like `input`: the classes of each sample, up to the first -1.
    """
    reduction = resolve(reduction, size_average, reduce)
    check_reduction(reduction)
    _check_scores("multilabel_margin_loss", input)
    if target.shape != input.shape and not (target.ndim <= 1 and input.ndim <= 1 and target.numel() == input.numel()):
        raise RuntimeError(
            f"multilabel_margin_loss: inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(input.shape)}"
        )
    scores, labels = (t.reshape(1, -1) if t.ndim < 2 else t for t in (input, target))
    classes = scores.size(1)
    if labels.device.type == "cpu" and bool(all_samples((labels < -1) | (labels >= classes)).any()):
        raise RuntimeError(f"multilabel_margin_loss: argument #2 'target' is out of range for {classes} classes")
    listed = (labels >= 0).long().cumprod(1) == 1
    index = labels.masked_fill(~listed, 0)
    wanted = cresset.zeros_like(labels).scatter_add_(1, index, listed.long()) > 0
    gap = 1 - scores.gather(1, index).unsqueeze(2) + scores.unsqueeze(1)  # (sample, target class, other class)
    counted = listed.unsqueeze(2) & ~wanted.unsqueeze(1)
    loss = gap.clamp_min(0).masked_fill(~counted, 0).sum((1, 2)) / classes
    return reduce_loss(loss.reshape(()) if input.ndim < 2 else loss, reduction, "MultilabelMarginLossBackward0")


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The binary cross entropy of sigmoid(x), averaged over the classes (the last dimension).

    >>> F.multilabel_soft_margin_loss(cresset.zeros(2, 3), cresset.ones(2, 3))
    tensor(0.6931)
    """
    reduction = resolve(reduction, size_average, reduce)
    loss = -(target * cresset.logsigmoid(input) + (1 - target) * cresset.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduce_loss(
        loss.sum(input.ndim - 1) / input.size(-1), reduction
    )  # of the input's classes, also where it broadcasts


def _check_margin(margin):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _check_triplet(anchor, positive, negative):
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


def _triplet(anchor, positive, negative, distance, margin, swap, reduction):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = cresset.minimum(far, distance(positive, negative))
    return reduce_loss((float(margin) + near - far).clamp_min(0), reduction)


@autocast("float32")
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, margin + |anchor - positive| - |anchor - negative|), with p-norms.

    Args:
        swap: measure the negative from the anchor or from the positive, whichever is nearer.

    >>> F.triplet_margin_loss(cresset.zeros(1, 2), cresset.zeros(1, 2), cresset.zeros(1, 2), margin=3.0)
    tensor(3.)
    """
    reduction = resolve(reduction, size_average, reduce)
    _check_margin(margin)
    return triplet_of_any_margin(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_of_any_margin(anchor, positive, negative, margin, p, eps, swap, reduction):
    """`triplet_margin_loss`, which may be negative."""
    _check_triplet(anchor, positive, negative)

    def distance(a, b):
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """`triplet_margin_loss` with a distance of one's own, pairwise_distance by default."""
    check_reduction(reduction)
    _check_margin(margin)
    _check_triplet(anchor, positive, negative)
    return _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


@autocast("float32")
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Args:
        input1, input2: vectors (D) or (N, D).
        target: () or (N).

    >>> F.cosine_embedding_loss(cresset.ones(1, 2), cresset.ones(1, 2), cresset.tensor([-1]))
    tensor(1.)
    """
    reduction = resolve(reduction, size_average, reduce)
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        if target.ndim > 1:
            raise RuntimeError(
                f"cosine_embedding_loss: 0D or 1D target tensor expected, got shape {list(target.shape)}"
            )
        raise RuntimeError(
            f"cosine_embedding_loss: {target.ndim}D target tensor expects {target.ndim + 1}D input tensors, "
            f"but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    tiny = 1e-12
    product = (input1 * input2).sum(-1)
    cosine = product / (((input1 * input1).sum(-1) + tiny) * ((input2 * input2).sum(-1) + tiny)).sqrt()
    zero = cresset.zeros((), dtype=cosine.dtype, device=cosine.device)
    like = cresset.where(target == 1, 1 - cosine, zero)
    return reduce_loss(like + cresset.where(target == -1, (cosine - float(margin)).clamp_min(0), zero), reduction)
