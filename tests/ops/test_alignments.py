"""Connectionist temporal classification, on every device: against the sum over all alignments, written out."""

import itertools
import math

import pytest

import cresset
import cresset.nn.functional as F

pytestmark = pytest.mark.kernels


def spelled(path, blank):
    """What an alignment says: repeated classes count once, blanks not at all."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def by_all_alignments(log_probs, target, blank):
    """The loss of one sample: (times, classes) and a list of labels."""
    times, classes = log_probs.shape
    rows = log_probs.tolist()
    total = sum(
        math.exp(sum(row[c] for row, c in zip(rows, path, strict=True)))
        for path in itertools.product(range(classes), repeat=times)
        if spelled(path, blank) == target
    )
    return -math.log(total) if total else math.inf


TARGETS = [[1, 1, 2], [2], [], [1, 2, 1], [2, 2]]
INPUTS = [5, 4, 3, 5, 2]


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_the_loss_is_the_sum_over_all_alignments(dtype, blank):
    dtype = getattr(cresset, dtype)
    log_probs = cresset.randn(5, len(TARGETS), 3).log_softmax(2).to(dtype)
    targets = [[(label + blank) % 3 for label in target] for target in TARGETS]
    padded = cresset.tensor([target + [blank] * (3 - len(target)) for target in targets])
    loss = F.ctc_loss(log_probs, padded, INPUTS, [len(t) for t in targets], blank, "none")
    wanted = [
        by_all_alignments(log_probs[:times, n].double(), target, blank)
        for n, (times, target) in enumerate(zip(INPUTS, targets, strict=True))
    ]
    assert loss.dtype == dtype and wanted[-1] == math.inf  # two times are too few for the same label twice
    cresset.testing.assert_close(loss.double(), cresset.tensor(wanted, dtype=cresset.float64), **CLOSE[str(dtype)[6:]])


CLOSE = {
    "float64": {"rtol": 1e-12, "atol": 0},
    "float32": {"rtol": 1e-5, "atol": 0},
    "float16": {"rtol": 1e-3, "atol": 0},
    "bfloat16": {"rtol": 1e-2, "atol": 0},
}


def loss_of(scores, targets, inputs, lengths, blank=0, **options):
    return F.ctc_loss(scores.log_softmax(2), targets, inputs, lengths, blank, "none", **options)


def test_its_gradient_is_the_derivative_also_of_labels_that_come_again_and_of_blanks_among_them():
    scores = cresset.randn(6, 3, 4, dtype=cresset.float64, requires_grad=True)
    targets = cresset.tensor([[1, 3, 1, 1], [2, 0, 3, 0], [3, 3, 0, 0]])
    assert cresset.autograd.gradcheck(lambda x: loss_of(x, targets, (6, 6, 4), (4, 3, 2))[:2], (scores,))
    assert cresset.autograd.gradcheck(lambda x: loss_of(x, targets, (6, 6, 4), (3, 3, 1), 2), (scores,))


def test_times_after_the_end_have_no_gradient_and_an_impossible_target_none_that_is_a_number():
    scores = cresset.randn(4, 3, 3, requires_grad=True)
    call = (cresset.tensor([[1, 1], [1, 2], [2, 1]]), (2, 3, 0), (2, 1, 1))
    (bad,) = cresset.autograd.grad(F.ctc_loss(scores, *call, reduction="sum"), scores)
    assert bad[:2, 0].isnan().all() and (bad[2:, 0] == 0).all()
    assert bad[:3, 1].isfinite().all() and (bad[3, 1] == 0).all() and (bad[:, 2] == 0).all()
    (good,) = cresset.autograd.grad(F.ctc_loss(scores, *call, reduction="sum", zero_infinity=True), scores)
    assert (good[:, 0] == 0).all() and cresset.equal(good[:, 1], bad[:, 1])


def test_longer_targets_than_a_block_has_threads_or_fast_memory():
    """The loss of a target that is forced: one class is sure at each time."""
    for labels in (300, 1500):
        times = 2 * labels + 1
        path = [0] * times
        path[1::2] = [1 + i % 3 for i in range(labels)]
        scores = cresset.full((times, 1, 4), -8.0, dtype=cresset.float64)
        scores[cresset.arange(times), 0, cresset.tensor(path)] = 8.0
        scores.requires_grad_()
        loss = loss_of(scores, cresset.tensor([path[1::2]]), (times,), (labels,))
        sure = scores.detach().log_softmax(2).amax(2).sum()
        assert 0 < loss.item() < -sure.item()  # other alignments add to the one that is forced
        loss.sum().backward()
        assert scores.grad.isfinite().all()
        cresset.testing.assert_close(scores.grad.sum(2), cresset.zeros(times, 1, dtype=cresset.float64))


def test_samples_without_labels_and_nothing_at_all():
    log_probs = cresset.randn(3, 2, 4).log_softmax(2).requires_grad_()
    loss = F.ctc_loss(log_probs, cresset.zeros(2, 0, dtype=cresset.int64), (3, 1), (0, 0), reduction="none")
    cresset.testing.assert_close(loss, cresset.stack([-log_probs[:, 0, 0].sum(), -log_probs[0, 1, 0]]))
    loss.sum().backward()
    assert log_probs.grad[1:, 1].abs().max() == 0
    with pytest.raises(RuntimeError, match="must not be empty"):
        F.ctc_loss(log_probs[:, :0], cresset.zeros(0, 2).long(), (), (), reduction="none")


def test_what_it_refuses():
    log_probs = cresset.randn(3, 1, 4).log_softmax(2).requires_grad_()
    with pytest.raises(IndexError, match=r"ctc_loss.*9"):
        F.ctc_loss(log_probs, cresset.tensor([[1, 9]]), (3,), (2,)).item()
        cresset.cuda.synchronize()
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.ctc_loss(cresset.zeros(3, 1, 4, dtype=cresset.int64), cresset.tensor([[1]]), (3,), (1,))
    loss = F.ctc_loss(log_probs, cresset.tensor([[1, 2]]), (3,), (2,))
    (grad,) = cresset.autograd.grad(loss, log_probs, create_graph=True)
    with pytest.raises(NotImplementedError, match="derivative for '_ctc_loss_backward' is not implemented"):
        grad.sum().backward()


def test_inside_vmap_each_call_has_samples_of_its_own():
    log_probs = cresset.randn(2, 5, 3, 4).log_softmax(3)
    call = (cresset.tensor([[1, 2], [3, 3], [1, 1]]), (5, 4, 5), (2, 1, 2))
    for transform in (lambda f: f, cresset.func.grad):
        one = transform(lambda x: F.ctc_loss(x, *call))
        cresset.testing.assert_close(cresset.vmap(one)(log_probs), cresset.stack([one(x) for x in log_probs]))
