"""Alignments of targets with inputs in time, as one kernel each: what `nn.functional.ctc_loss` calls."""

import cresset

from .histogram import _without_derivative
from .registry import batch, operator

_ctc_alignments = operator("_ctc_alignments", """Minus the logarithm of the probability of each target, and that of all
    ways to each state at each time: see `nn.functional.ctc_loss`.

    Args:
        log_probs: (times, samples, classes).
        targets: (samples, labels) in int64; those beyond a sample's length mean nothing.
        lengths: (2, samples) in int64: of the inputs and of the targets.
        blank: the class that means "no label".
        zero_infinity: no gradient where no alignment is possible.
    """)  # fmt: skip


@_ctc_alignments.derivative
def _(grad, log_probs, targets, lengths, blank, zero_infinity, loss, alpha):
    """That of log-probabilities which come out of a log_softmax: exp(log_probs) less the probability that a time
    belongs to a class."""

    def by_log_probs():
        result = cresset._ctc_alignments_backward(grad, log_probs, targets, lengths, blank, zero_infinity, loss, alpha)
        if cresset.is_grad_enabled() and (grad.requires_grad or log_probs.requires_grad):
            sources = [t for t in (grad, log_probs) if t.requires_grad]
            result = _without_derivative(result, sources, "_ctc_loss_backward")
        return result

    yield by_log_probs


# --- inside vmap: the samples of all calls ---


def _samples(call, first):
    """The log-probabilities, the targets and the lengths of the samples of all calls."""
    log_probs, targets, lengths = (call.full(i) for i in range(first, first + 3))
    return log_probs.movedim(0, 1).flatten(1, 2), targets.flatten(0, 1), lengths.movedim(0, 1).flatten(1, 2)


@batch("_ctc_alignments")
def _(call):
    results = call.run(*_samples(call, 0), *call.args[3:])
    return [result.unflatten(0, (call.size, -1)) for result in results]


@batch("_ctc_alignments_backward")
def _(call):
    grad, loss, alpha = (call.full(i).flatten(0, 1) for i in (0, 6, 7))
    result = call.run(grad, *_samples(call, 1), *call.args[4:6], loss, alpha)
    return result.unflatten(1, (call.size, -1)).movedim(1, 0)
