"""Placement rules of the losses of classification: cut along the batch; inside `loss_parallel` along the classes."""

import contextlib

import cresset

from . import dispatch
from .dispatch import Way
from .placement_types import Partial, Shard
from .redistribution import moved, redistributed
from .words import SUM, WHOLE

NONE, MEAN, TOTAL = 0, 1, 2  # how a loss is reduced


@contextlib.contextmanager
def loss_parallel():
    """Inside, cross_entropy of scores that are cut along the classes does not bring them together: processes exchange
    the largest score, the sum of exponentials and the score of the target, of each sample.
    """
    before = dispatch._settings.get("loss_parallel")
    dispatch._settings["loss_parallel"] = True
    try:
        yield
    finally:
        dispatch._settings["loss_parallel"] = before


def classified(call, input, target, weight, reduction, ignore_index, label_smoothing=0.0):
    """_cross_entropy and _nll_loss."""
    tensors, outs = call.tensors, len(call.results)
    others = [WHOLE] * (len(tensors) - 2)
    ways, classes = [], 0 if input.ndim == 1 else 1
    if input.ndim > 1:
        result = {NONE: Shard(0), MEAN: SUM, TOTAL: SUM}[reduction]
        ways.append(Way((Shard(0), Shard(0), *others), (result, *[WHOLE] * (outs - 1))))
    indices = not target.dtype.is_floating_point
    if dispatch._settings.get("loss_parallel") and indices and call.name == "_cross_entropy":
        ways.append(Way((Shard(classes), WHOLE, *others), (WHOLE,) * outs))

    def run(func, plan, args, kwargs):
        spec = plan.ins[0]
        over_classes = tuple(i for i, p in enumerate(spec.placements) if p.is_shard(classes) and input.ndim > 1
                             or p.is_shard() and input.ndim == 1)  # fmt: skip
        over_batch = tuple(i for i, p in enumerate(spec.placements) if i not in over_classes and p.is_shard())
        if not over_classes and not over_batch:
            return func(*args, **kwargs)
        scores, chosen, factors = args[0], args[1], args[2]
        if over_classes:
            losses, weights = _over_classes(spec, over_classes, classes, args)
            if reduction == NONE:
                return _filled(losses, plan)
        elif reduction in (NONE, TOTAL):
            return func(*args, **kwargs)
        else:
            losses = func(scores, chosen, factors, TOTAL, *args[4:], **kwargs)[0]
            weights = _weights(chosen, factors, ignore_index, indices, scores, classes)
        total = losses.sum()
        if reduction == TOTAL:
            return _filled(total, plan)
        count = weights.sum()
        placed = tuple(SUM if i in over_batch else WHOLE for i in range(spec.mesh.ndim))
        count = moved(count, (), spec.mesh, placed, (WHOLE,) * spec.mesh.ndim)
        return _filled(total / count, plan)

    return ways, run


def _filled(result, plan):
    """A loss and stand-ins for what the operator gives besides, for its own derivative only."""
    return (result, *[result.new_zeros(spec.local_shape()[0], dtype=spec.dtype) for spec in plan.outs[1:]])


def _weights(target, factors, ignore_index, indices, scores, classes):
    """What each sample counts in the mean."""
    if not indices:
        rows = scores.numel() // scores.shape[classes]
        return scores.detach().new_full((rows,), 1.0)
    valid = target != ignore_index
    if factors is None:
        return valid.to(scores.dtype)
    return factors[cresset.where(valid, target, 0)] * valid


def _over_classes(spec, over, classes, args):
    """The losses of samples whose scores are cut along the classes, and what each counts."""
    scores, target, factors, _, ignore_index, smoothing = args
    mesh = spec.mesh
    whole = (WHOLE,) * mesh.ndim

    def reduced(value, op):
        placed = tuple(Partial(op) if i in over else WHOLE for i in range(mesh.ndim))
        return redistributed(value, value.shape, mesh, placed, whole)

    shape, offset = spec.local_shape()
    first, length = offset[classes], shape[classes]
    with cresset.no_grad():
        top = scores.amax(classes) if length else scores.new_full(target.shape, -cresset.inf)
        top = reduced(top, "max")
    shifted = scores - top.unsqueeze(classes)
    log_total = reduced(shifted.exp().sum(classes), "sum").log()
    places = target - first
    inside = (places >= 0) & (places < length)
    found = shifted.gather(classes, cresset.where(inside, places, 0).unsqueeze(classes)).squeeze(classes)
    found = reduced(cresset.where(inside, found, 0), "sum")
    valid = target != ignore_index
    weights = valid.to(scores.dtype)
    if factors is not None:
        weights = factors[cresset.where(valid, target, 0)] * valid
    losses = (log_total - found) * weights
    if smoothing:
        mine = None if factors is None else factors.narrow(0, first, length)
        mine = shifted if mine is None else shifted * mine.view([-1 if d == classes else 1 for d in range(scores.ndim)])
        scale = spec.shape[classes] if factors is None else factors.sum()
        spread = log_total * scale - reduced(mine.sum(classes), "sum")
        losses = (1 - smoothing) * losses + smoothing / spec.shape[classes] * spread * valid
    return losses, weights


RULES = {"classified": classified}
