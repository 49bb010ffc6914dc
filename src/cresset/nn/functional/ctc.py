"""Connectionist temporal classification: the probability of a label sequence, summed over all its alignments in
time."""

import math

import cresset

from ..._native import name_node
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
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(lengths, cresset.Tensor) and (lengths.is_floating_point() or lengths.is_complex()):
            raise RuntimeError(f"ctc_loss: {name} must be integral, got {lengths.dtype}")
    if log_probs.numel() == 0:
        raise RuntimeError(f"ctc_loss: log_probs tensor must not be empty, got shape {list(log_probs.shape)}")
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
    lengths = cresset.tensor([input_lengths, target_lengths], dtype=cresset.int64, device=log_probs.device)
    loss, _ = cresset._ctc_alignments(log_probs, padded.to(log_probs.device), lengths, blank, zero_infinity)
    if zero_infinity:
        loss = name_node(loss.masked_fill(loss == math.inf, 0), "WhereBackward0")
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
