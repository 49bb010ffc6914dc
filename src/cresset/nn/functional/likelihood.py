"""Losses that are negative logarithms of a likelihood: of classes, of yes and no, of counts, of a normal variable."""

import math
import warnings

import cresset

from ..._native import name_node
from ...ops.autocast import autocast
from ...ops.batches import all_samples
from .reduction import check_reduction, reduce_loss, resolve


def _check_class_weight(weight, classes, who):
    if weight is not None and (weight.ndim != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"{who}: weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )


def _check_class_indices(input, target, who):
    """Refuse classes `target` whose shape or dtype does not suit the scores `input`."""
    ndim = input.ndim
    if ndim < 1:
        raise ValueError(f"{who}: Expected 1 or more dimensions (got 0)")
    if ndim > 1 and (target.ndim == 0 or input.size(0) != target.size(0)):
        count = target.size(0) if target.ndim else "none: 0-d"
        raise ValueError(f"{who}: Expected input batch_size ({input.size(0)}) to match target batch_size ({count}).")
    if target.dtype is not cresset.int64 and target.dtype is not cresset.uint8:
        name = str(target.dtype).split(".")[-1]
        raise RuntimeError(f"{who}: expected target dtype to be Long or Byte, but got {name}")
    if ndim <= 2:
        if target.ndim > 1:
            raise RuntimeError(
                f"{who}: 0D or 1D target tensor expected, multi-target not supported; "
                f"input has shape {list(input.shape)}, target {list(target.shape)}"
            )
        if ndim == 1 and target.numel() != 1:
            raise ValueError(f"{who}: For 1D input, 1D target must have size 1, but got target size: {target.numel()}")
    else:
        expected = [input.size(0), *input.shape[2:]]
        if list(target.shape) != expected:
            raise RuntimeError(
                f"{who}: Expected target size {expected}, got {list(target.shape)}: "
                f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)})"
            )


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _checked_reduction(reduction, size_average, reduce, weight, who):
    """The reduction as a number."""
    reduction = resolve(reduction, size_average, reduce)
    check_reduction(reduction)
    if weight is not None and weight.requires_grad and cresset.is_grad_enabled():
        raise RuntimeError(
            f"{who}: the loss is not differentiable with respect to argument 'weight'. This input cannot have "
            "requires_grad True; detach it"
        )
    return _REDUCTIONS[reduction]


@autocast("float32")
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability that `input` gives to each class in `target`.

    Args:
        input: log-probabilities (C), (N, C) or (N, C, d1, ...).
        target: classes 0 to C-1: (), (N) or (N, d1, ...).
        weight: how much each class counts; the mean is then a weighted one.
        ignore_index: a target that counts nothing.

    >>> F.nll_loss(cresset.tensor([[-1.0, -2.0], [-3.0, -4.0]]), cresset.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = _checked_reduction(reduction, size_average, reduce, weight, "nll_loss")
    _check_class_indices(input, target, "nll_loss")
    _check_class_weight(weight, input.size(0 if input.ndim == 1 else 1), "nll_loss")
    return cresset._nll_loss(input, target, weight, reduction, ignore_index)[0]


@autocast(cpu="float32")
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """Minus the log-probability of the target under the softmax of `input`.

    Args:
        input: scores (C), (N, C) or (N, C, d1, ...), any numbers.
        target: classes 0 to C-1, or probabilities in the shape of `input`.
        weight: how much each class counts; the mean is then a weighted one.
        ignore_index: a class that counts nothing.
        label_smoothing: how much of each target is spread evenly over all classes.

    >>> F.cross_entropy(cresset.zeros(2, 4), cresset.tensor([0, 3]))
    tensor(1.3863)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    has_probabilities = input.shape == target.shape and input.ndim
    # CUDA's autocast computes it in float32. A reduced loss of classes is given so without the scores, perhaps most of
    # the memory, being cast.
    in_half_precision = input.is_cuda and input.dtype.itemsize == 2 and cresset.is_autocast_enabled("cuda")
    if in_half_precision and (has_probabilities or reduction == "none"):
        input = input.float()
    if has_probabilities:
        reduction = resolve(reduction, size_average, reduce)
        return _cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    reduction = _checked_reduction(reduction, size_average, reduce, weight, "cross_entropy")
    _check_class_indices(input, target, "cross_entropy")
    _check_class_weight(weight, input.size(0 if input.ndim == 1 else 1), "cross_entropy")
    return cresset._cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)[0]


def _along_classes(weight, input, dim):
    return weight.reshape([-1 if d == dim else 1 for d in range(input.ndim)])


def _cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing):
    if not target.is_floating_point():
        name = str(target.dtype).split(".")[-1]
        raise RuntimeError(
            f"cross_entropy: Expected floating point type for target with class probabilities, got {name}; "
            f"input and target have the same shape {list(input.shape)}"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy: ignore_index is not supported for floating point target, got {ignore_index}"
        )
    dim = 0 if input.ndim == 1 else 1
    classes = input.size(dim)
    _check_class_weight(weight, classes, "cross_entropy")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    product = input.log_softmax(dim) * target
    if weight is not None:
        product = product * _along_classes(weight, input, dim)
    if reduction == "mean":
        samples = input.numel() // classes if classes else 0
        return name_node(-product.sum() / samples if samples else product.sum() * math.nan, "DivBackward1")
    return reduce_loss(-product.sum(dim), reduction, "NegBackward0")


@autocast(cpu="float32")
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy of the scores that a linear layer gives `input`.

    Args:
        input: features (in_features) or (N, in_features).
        linear_weight: (C, in_features), or (C, d1, ..., in_features) for N x d1 x ... predictions.
        target: classes or probabilities, as for `cross_entropy`.
        options: how PyTorch may cut the work into pieces to spare memory; accepted, and not needed for the result.

    >>> F.linear_cross_entropy(cresset.zeros(2, 3), cresset.ones(4, 3), cresset.tensor([0, 3]))
    tensor(1.3863)
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            "requires "
            f"batched input, (N, {input.size(0)}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_weight.ndim <= 2:
        scores = cresset.linear(input, linear_weight, linear_bias)
    else:
        shape = linear_weight.shape[:-1]
        flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
        scores = cresset.linear(input, linear_weight.flatten(0, -2), flat_bias).unflatten(-1, shape)
    return cross_entropy(
        scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


@autocast(cpu="float32", cuda="unsafe")
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(x) + (1 - target) log(1 - x)) for probabilities x; the logarithms are at least -100.

    >>> F.binary_cross_entropy(cresset.tensor([0.5, 0.5]), cresset.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    reduction = resolve(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype != input.dtype:
        raise RuntimeError(f"binary_cross_entropy: Found dtype {target.dtype} but expected {input.dtype}")
    fake = getattr(input, "is_fake", False) is True  # there are no values to look at
    if input.device.type == "cpu" and input.numel() and not fake:
        for name, given in (("input", input), ("target", target)):
            low, high = (bound.item() for bound in cresset.aminmax(all_samples(given.detach())))
            if not (low >= 0 and high <= 1):
                raise RuntimeError(
                    f"binary_cross_entropy: all elements of {name} should be between 0 and 1, "
                    f"they are between {low} and {high}"
                )
    loss = cresset.binary_cross_entropy_elementwise(input, target)
    if weight is not None:  # in the dtype of the loss
        loss = loss * weight if weight.dtype == loss.dtype else loss.mul_(weight)
    return reduce_loss(loss, reduction, "BinaryCrossEntropyBackward0")


@autocast("float32")
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The binary cross entropy of sigmoid(x), without overflow on the way.

    Args:
        pos_weight: how many times the positive examples count.

    >>> F.binary_cross_entropy_with_logits(cresset.tensor([0.0, -80.0]), cresset.tensor([1.0, 1.0]), reduction="none")
    tensor([ 0.6931, 80.0000])
    """
    reduction = resolve(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    loss = losses_of_logits(input, target, weight, pos_weight)
    return reduce_loss(loss, reduction, "BinaryCrossEntropyWithLogitsBackward0")


def losses_of_logits(input, target, weight, pos_weight):
    """The binary cross entropy of each element, which may broadcast; in the dtype of the target."""
    if pos_weight is None:
        loss = cresset.binary_cross_entropy_with_logits_elementwise(input, target)
    else:
        loss = cresset.weighted_binary_cross_entropy_with_logits_elementwise(input, target, pos_weight)
    loss = loss if weight is None else loss * weight
    return loss if loss.dtype == target.dtype or not target.is_floating_point() else loss.to(target.dtype)


@autocast("float32")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - x), for a log-probability x: how far a distribution is from its target.

    Args:
        reduction: "batchmean" divides the sum by the size of dimension 0, which is the divergence's definition.
        log_target: the target is a log-probability, too.

    >>> F.kl_div(cresset.tensor([0.5, 0.5]).log(), cresset.tensor([0.0, 1.0]), reduction="sum")
    tensor(0.6931)
    """
    reduction = resolve(reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=3,  # beyond autocast
        )
    loss = kl_div_of_each(input, target, log_target)
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.ndim else loss.sum()
    return reduce_loss(loss, reduction)


def kl_div_of_each(input, target, log_target):
    """The terms of the divergence, which PyTorch makes of other operators: the last one depends on `log_target`."""
    loss = cresset.kl_div_elementwise(input, target, log_target)
    return name_node(loss, "MulBackward0" if log_target else "SubBackward0")


@autocast("float32")
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Minus the log-likelihood of the count `target` for the rate exp(x), or for the rate x without `log_input`.

    Args:
        full: add Stirling's approximation of log(target!) where the target is above one.
        eps: added to the rate before its logarithm is taken.
    """
    reduction = resolve(reduction, size_average, reduce)
    check_reduction(reduction)
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(cresset.get_default_dtype())
    loss = cresset.poisson_nll_elementwise(input, target, log_input, eps)
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Minus the log-likelihood of `target` for a normal variable with mean `input` and variance `var`.

    Args:
        var: a number, or a tensor shaped like `input`, possibly without its last dimension or with 1 there.
        full: add the constant log(2 pi) / 2.
        eps: the smallest variance, for stability; it does not change the gradient.
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"var has negative entry/entries, got {var}")
        var = var * cresset.ones_like(input)
    elif var.shape != input.shape:
        if input.ndim and input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not (input.ndim == var.ndim and input.shape[:-1] == var.shape[:-1] and var.size(-1) == 1):
            raise ValueError(f"var is of incorrect size {list(var.shape)} for input of shape {list(input.shape)}")
    check_reduction(reduction)
    if var.device.type != "meta" and (all_samples(var) < 0).any():
        raise ValueError("var has negative entry/entries")
    var = var.clone()
    with cresset.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)
