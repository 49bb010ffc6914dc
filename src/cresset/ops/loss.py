"""Losses of scores against classes, as one kernel each: what `nn.functional.nll_loss` and `cross_entropy` call.

The reduction is 0 for none, 1 for the mean and 2 for the sum. A gradient is one kernel too; when it shall itself be
differentiated (create_graph) it is made of ordinary operators instead.
"""

import cresset

from .registry import function, operator

MEAN = 1

_nll_loss = operator("_nll_loss", """The negative log-likelihood of classes, and the sum of their weights: see `nn.functional.nll_loss`.""")  # fmt: skip
_cross_entropy = operator("_cross_entropy", """The cross entropy of scores and classes, the sum of the classes' weights, and of each sample the largest score and the
    logarithm of the sum of exp(score - largest): see `nn.functional.cross_entropy`.""")  # fmt: skip


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
def _(grad, input, target, weight, reduction, ignore_index, total_weight):
    if not cresset.is_grad_enabled():
        yield lambda: cresset._nll_loss_backward(grad, input, target, weight, reduction, ignore_index, total_weight)
        return
    dim, place, weighted, _ = _shares(grad, input, target, weight, reduction, ignore_index, total_weight)
    yield lambda: cresset.zeros_like(input).scatter(dim, place, -weighted)


@_cross_entropy.derivative
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
