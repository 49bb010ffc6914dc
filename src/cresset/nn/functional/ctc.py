"""Connectionist temporal classification: the probability of a label sequence, summed over all its alignments in
time."""

import math

import cresset

from ...autograd import Function
from ...ops.autocast import autocast
from .reduction import check_reduction, reduce_loss


@autocast(cpu="float32")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Minus the log-probability of `targets`, whatever their alignment with the inputs.

    Args:
        log_probs: (T, N, C) or (T, C): log-probabilities of the C classes at each time.
        targets: (N, S), or (S); or the targets of all samples one after the other.
        input_lengths, target_lengths: how many times and how many labels of each sample count.
        blank: the class that means "no label".
        reduction: "mean" divides each loss by the target's length first.
        zero_infinity: no loss and no gradient where no alignment is possible.

    >>> probability = cresset.tensor([[0.5, 0.5], [0.5, 0.5]])
    >>> F.ctc_loss(probability.log(), cresset.tensor([1]), (2,), (1,), reduction="sum")  # 3 of 4 alignments
    tensor(0.2877)
    """
    check_reduction(reduction)
    batched = log_probs.ndim == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    times, samples, classes = log_probs.shape
    input_lengths, target_lengths = (
        [int(n) for n in (lengths.reshape(-1).tolist() if isinstance(lengths, cresset.Tensor) else _listed(lengths))]
        for lengths in (input_lengths, target_lengths)
    )
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range, got {blank} of {classes} classes")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != samples:
            raise RuntimeError(f"ctc_loss: {name} must be of size batch_size {samples}, got {len(lengths)}")
        if min(lengths, default=0) < 0:
            raise RuntimeError(f"ctc_loss: expected {name} to have value at least 0, got {lengths}")
    if max(input_lengths, default=0) > times:
        raise RuntimeError(
            f"ctc_loss: Expected input_lengths to have value at most {times}, but got value {max(input_lengths)}"
        )
    padded = _padded(targets, target_lengths, samples, blank)
    lengths = cresset.tensor([input_lengths, target_lengths], device=log_probs.device)
    loss = _Alignments.apply(log_probs, padded.to(log_probs.device), lengths, blank, zero_infinity)
    if zero_infinity:
        loss = loss.masked_fill(loss == math.inf, 0)
    if reduction == "mean":
        return (loss / lengths[1].clamp_min(1).to(loss.dtype)).mean()
    return reduce_loss(loss if batched else loss.squeeze(0), reduction)


def _listed(lengths):
    return lengths if isinstance(lengths, (list, tuple)) else [lengths]


def _padded(targets, lengths, samples, blank):
    """The targets as (N, longest), whatever they came as."""
    longest = max(lengths, default=0)
    if targets.ndim == 2:
        if targets.size(0) != samples or targets.size(1) < longest:
            raise RuntimeError(
                f"ctc_loss: Expected tensor to have size at least {longest} at dimension 1, "
                f"but got size {targets.size(1)} for argument 'targets' (while checking arguments for ctc_loss)"
            )
        return targets[:, :longest].long()
    if targets.ndim != 1 or targets.numel() != sum(lengths):
        raise RuntimeError(f"ctc_loss: Expected {sum(lengths)} targets in all, got shape {list(targets.shape)}")
    rows = targets.new_full((samples, longest), blank, dtype=cresset.int64)
    for row, piece in zip(rows, targets.split(lengths), strict=True):
        row[: len(piece)] = piece
    return rows


def _add_logs(*terms):
    """log of the sum of the exponentials; -inf where all are."""
    stacked = cresset.stack(terms)
    top = stacked.amax(0)
    safe = top.masked_fill(top == -math.inf, 0)
    return (stacked - safe).exp().sum(0).log() + safe


def _shifted(x, by):
    """`x` moved to the right along its last dimension (to the left if `by` is negative); -inf comes in."""
    width = x.size(-1)
    amount = min(abs(by), width)
    gap = x.new_full((*x.shape[:-1], amount), -math.inf)
    return cresset.cat([gap, x[..., : width - amount]], -1) if by > 0 else cresset.cat([x[..., amount:], gap], -1)


class _Alignments(Function):
    """The loss for each sample, by summing over alignments from the front (alpha) and, for the gradient, from the back
    (beta).

    With states s = blank, label, blank, label, ..., blank, a step stays, moves by one, or by two over a blank that
    separates different labels. The gradient is the one for log-probabilities that come out of a log_softmax:
    exp(log_probs) minus the probability that a time belongs to a class.
    """

    @staticmethod
    def forward(ctx, log_probs, targets, lengths, blank, zero_infinity):
        times, samples, _ = log_probs.shape
        states = 2 * targets.size(1) + 1
        labels = targets.new_full((samples, states), blank)
        labels[:, 1::2] = targets
        scores = log_probs.gather(2, labels.expand(times, -1, -1))
        may_skip = cresset.zeros_like(labels, dtype=cresset.bool)
        may_skip[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]

        alpha = scores.new_full((times, samples, states), -math.inf)
        alpha[0, :, :2] = scores[0, :, :2]
        for t in range(1, times):
            last = alpha[t - 1]
            skipped = _shifted(last, 2).masked_fill(~may_skip, -math.inf)
            alpha[t] = _add_logs(last, _shifted(last, 1), skipped) + scores[t]

        final = alpha[(lengths[0] - 1).clamp_min(0), cresset.arange(samples, device=labels.device)]
        end = 2 * lengths[1].unsqueeze(1)
        total = _add_logs(
            final.gather(1, end), final.gather(1, (end - 1).clamp_min(0)).masked_fill(end == 0, -math.inf)
        )
        total = total.squeeze(1)
        # Without inputs only the empty target is possible.
        nothing = lengths[0] == 0
        total = cresset.where(nothing, cresset.where(lengths[1] == 0, 0.0, -math.inf).to(total.dtype), total)
        ctx.save_for_backward(log_probs, alpha, scores, labels, may_skip, lengths, total)
        ctx.zero_infinity = zero_infinity
        return -total

    @staticmethod
    def backward(ctx, grad):
        log_probs, alpha, scores, labels, may_skip, lengths, total = ctx.saved_tensors
        times, samples, states = alpha.shape
        place = cresset.arange(states, device=labels.device)
        end = 2 * lengths[1].unsqueeze(1)
        is_end = (place == end) | (place == end - 1)
        skip_from = cresset.cat([may_skip[:, 2:], may_skip.new_zeros(samples, min(2, states))], 1)[:, :states]

        beta = cresset.full_like(alpha, -math.inf)
        after = cresset.full_like(alpha[0], -math.inf)
        for t in reversed(range(times)):
            onward = _add_logs(after, _shifted(after, -1), _shifted(after, -2).masked_fill(~skip_from, -math.inf))
            start = cresset.zeros_like(onward).masked_fill(~is_end, -math.inf)
            last = (lengths[0] - 1 == t).unsqueeze(1)
            after = cresset.where(last, start, onward) + scores[t]
            beta[t] = after

        # alpha and beta both hold the score of their own time, so one of them is taken off.
        posterior = alpha + beta - total.unsqueeze(1) - scores
        posterior = posterior.masked_fill((alpha == -math.inf) | (beta == -math.inf), -math.inf).exp()
        belongs = cresset.zeros_like(log_probs).scatter_add_(2, labels.expand(times, -1, -1), posterior)
        time = cresset.arange(times, device=labels.device)[:, None, None]
        result = (log_probs.exp() - belongs).masked_fill(time >= lengths[0][:, None], 0) * grad[:, None]
        if ctx.zero_infinity:
            result = result.masked_fill((total == -math.inf)[:, None], 0)
        return result, None, None, None, None
