"""Losses of scores against classes, as one kernel each: what `nn.functional.nll_loss` and `cross_entropy` call.

The reduction is 0 for none, 1 for the mean and 2 for the sum. A gradient is one kernel too; when it shall itself be
differentiated (create_graph) it is made of ordinary operators instead.
"""

import cresset

from .registry import batch, constant, flat, function, onnx, operator, placement

NONE, MEAN = 0, 1

_nll_loss = operator("_nll_loss", """The negative log-likelihood of classes, and the sum of their weights: see
    `nn.functional.nll_loss`.""")  # fmt: skip
_cross_entropy = operator("_cross_entropy", """The cross entropy of scores and classes, the sum of the classes'
    weights, and of each sample the largest score and the logarithm of the sum of exp(score - largest): see
    `nn.functional.cross_entropy`.""")  # fmt: skip


def _shares(grad, input, target, weight, reduction, ignore_index, total_weight):
    """The classes, with an ignored one as 0, and the gradient of each sample's loss times its class's weight and alone,
    all with a dimension of size one for the classes."""
    dim = 1 if input.ndim > 1 else 0
    target = target.long() if input.ndim > 1 else target.long().reshape(())
    ignored = target == ignore_index
    target = target.masked_fill(ignored, 0)
    each = grad / total_weight.to(grad.dtype) if reduction == MEAN else grad
    alone = each.expand(target.shape).masked_fill(ignored, 0)
    weighted = alone if weight is None else alone * weight[target]
    return dim, target.unsqueeze(dim), weighted.unsqueeze(dim), alone.unsqueeze(dim)


@_nll_loss.derivative
@constant("target", "weight")
@flat
def _(grad, input, target, weight, reduction, ignore_index, total_weight):
    if not cresset.is_grad_enabled():
        yield lambda: cresset._nll_loss_backward(grad, input, target, weight, reduction, ignore_index, total_weight)
        return
    total = total_weight.detach()
    dim, place, weighted, _ = _shares(grad, input, target, weight, reduction, ignore_index, total)
    yield lambda: cresset.zeros_like(input).scatter(dim, place, -weighted)


@_cross_entropy.derivative
@constant("target", "weight")
def _(grad, input, target, weight, reduction, ignore_index, label_smoothing, total_weight, statistics):
    """With p = softmax(x), class t, weights w and smoothing e of C classes: dx = ((1 - e) w_t + e sum(w) / C) p, less
    e w / C, and less (1 - e) w_t in the place of t."""
    if not cresset.is_grad_enabled():
        yield lambda: cresset._cross_entropy_backward(
            grad, input, target, weight, reduction, ignore_index, label_smoothing, total_weight, statistics
        )
        return
    dim, place, weighted, alone = _shares(grad, input, target, weight, reduction, ignore_index, total_weight)
    own, even = (1 - label_smoothing) * weighted, label_smoothing / max(input.size(dim), 1) * alone

    def by_input():
        if weight is None:
            weights, total = 1, input.size(dim)
        else:
            weights = weight.reshape([-1 if d == dim else 1 for d in range(input.ndim)])
            total = weight.sum()
        gradient = (own + even * total) * input.softmax(dim) - cresset.zeros_like(input).scatter(dim, place, own)
        return gradient - even * weights if label_smoothing else gradient

    yield by_input


@function(method="only")
def reinforce(input, reward):
    """Gone from PyTorch; log_prob of a distribution does it."""
    raise RuntimeError(
        "reinforce() was removed: use -distributions.Categorical(probs).log_prob(action) * reward as a loss"
    )


# --- inside vmap ---


def _joined(call, i):
    """Scores or classes of the samples of all calls; one call's scores may have no dimension of samples."""
    value = call.full(i)
    return value if call.rank(call.place("input")) == 1 else value.flatten(0, 1)


def _total_weights(call, first):
    """The sum of the weights of the classes that count, for each call."""
    target, weight, ignore_index = call.full(first + 1), call.args[first + 2], call.args[first + 4]
    counted = target != ignore_index
    weights = counted if weight is None else weight[target.masked_fill(~counted, 0).long()] * counted
    return weights.double().reshape(call.size, -1).sum(1)


@batch("_nll_loss", "_cross_entropy")
def _(call):
    if call.dims[2] is not None:
        return NotImplemented
    _, _, weight, reduction, *others = call.args
    losses, _, *statistics = call.run(
        _joined(call, 0), _joined(call, 1).reshape(_target_shape(call)), weight, NONE, *others
    )
    total = _total_weights(call, 0)
    if reduction == NONE:
        losses = losses if call.rank() == 1 else losses.unflatten(0, (call.size, -1))
    else:
        losses = losses.reshape(call.size, -1).sum(1)
        losses = losses / total.to(losses.dtype) if reduction == MEAN else losses
    return [losses, total, *(part.reshape(2, call.size, -1).movedim(1, 0) for part in statistics)]


def _target_shape(call):
    shape = _joined(call, call.place("input")).shape
    return (shape[0], *shape[2:])


@batch("_nll_loss_backward", "_cross_entropy_backward")
def _(call):
    if call.dims[3] is not None:
        return NotImplemented
    _, _, _, weight, reduction, *others = call.args
    total = call.place("total_weight")
    grad, shape = call.full(0), _target_shape(call)
    if reduction != NONE:
        grad = grad / call.full(total).to(grad.dtype) if reduction == MEAN else grad
        grad = grad.reshape(call.size, 1).expand(call.size, cresset.Size(shape).numel() // max(call.size, 1))
    statistics = [call.full(total + 1).movedim(0, 1).flatten(1)] if total + 1 < len(call.args) else []
    others = others[: total - 5]
    result = call.run(
        grad.reshape(shape),
        _joined(call, 1),
        _joined(call, 2).reshape(shape),
        weight,
        NONE,
        *others,
        grad.new_ones((), dtype=cresset.float64),
        *statistics,
    )
    return result if call.rank(1) == 1 else result.unflatten(0, (call.size, -1))


# --- as ONNX ---


@onnx("_cross_entropy")
def _(g, input, target, weight, reduction, ignore_index, label_smoothing):
    if label_smoothing or target.dtype.is_floating_point or len(input.shape) < 2:
        raise g.unsupported("label smoothing, targets that are probabilities, and inputs without a batch")
    kind = {0: "none", 1: "mean", 2: "sum"}[reduction]
    return [
        g.op("SoftmaxCrossEntropyLoss", input, target, weight, reduction=kind, ignore_index=ignore_index),
        None,
        None,
    ]


@onnx("_nll_loss")
def _(g, input, target, weight, reduction, ignore_index):
    kind = {0: "none", 1: "mean", 2: "sum"}[reduction]
    return [g.op("NegativeLogLikelihoodLoss", input, target, weight, reduction=kind, ignore_index=ignore_index), None]


# How they lie on several processes: words of distributed/tensor/words.py.
placement("_cross_entropy", "_nll_loss")("classified")
