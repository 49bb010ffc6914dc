"""nll_loss and cross_entropy on CUDA give what the CPU gives, and so do their gradients; a bad class is an IndexError
later.
"""

import pytest

import cresset
import cresset.nn.functional as F

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 3e-3, "bfloat16": 2e-2}


def numbers(shape, dtype="float32", seed=0):
    return cresset.randn(shape, generator=cresset.Generator().manual_seed(seed)).to(getattr(cresset, dtype))


def targets_for(x, ignored=-100):
    n = x.size(1) if x.ndim > 1 else x.size(0)
    shape = (*x.shape[:1], *x.shape[2:]) if x.ndim > 1 else ()
    t = cresset.randint(n, shape, generator=cresset.Generator().manual_seed(3))
    if t.ndim:
        t.reshape(-1)[0] = ignored
    return t


def loss_and_gradient(f, x, *others):
    x = x.detach().clone().requires_grad_()
    y = f(x, *others)
    y.backward(cresset.linspace(0.5, 1, y.numel(), dtype=cresset.float64).reshape(y.shape).to(y.device, y.dtype))
    return y.detach(), x.grad


def check(f, tensors, tolerance):
    got = loss_and_gradient(f, *(t if t is None else t.cuda() for t in tensors))
    for g, w in zip(got, loss_and_gradient(f, *tensors), strict=True):
        assert g.dtype == w.dtype
        cresset.testing.assert_close(g.cpu(), w, rtol=tolerance, atol=tolerance)


SHAPES = [(5, 10), (3, 1003), (2, 7, 5), (2, 20, 3, 3), (300, 4), (8,)]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy(shape, reduction):
    x = numbers(shape)
    weight = cresset.linspace(0.5, 2, x.size(1) if x.ndim > 1 else x.size(0))
    for w in (None, weight):
        for smoothing in (0.0, 0.1):
            check(
                lambda x, t, w, s=smoothing: F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=s),
                (x, targets_for(x), w),
                2e-5,
            )
        check(lambda x, t, w: F.nll_loss(x, t, w, reduction=reduction), (x, targets_for(x), w), 2e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_dtype(dtype):
    for shape in [(4, 600), (2, 6, 9)]:
        x = numbers(shape, dtype)
        check(F.cross_entropy, (x, targets_for(x)), TOLERANCE[dtype])
        check(F.nll_loss, (x, targets_for(x)), TOLERANCE[dtype])


def test_many_samples():
    x = numbers((20000, 3))
    check(lambda x, t: F.cross_entropy(x, t, ignore_index=2), (x, targets_for(x, 2)), 1e-5)


def test_rows_that_begin_between_vectors():
    for dtype in ("float32", "bfloat16"):
        x = numbers((4 * 1003 + 1,), dtype)
        check(
            lambda x, t: F.cross_entropy(x[1:].view(4, 1003), t),
            (x, cresset.tensor([0, 1002, 5, 500])),
            TOLERANCE[dtype],
        )


def test_an_ignored_sample_has_no_gradient_whatever_its_scores():
    x = numbers((3, 5))
    x[0] = float("nan")
    check(F.cross_entropy, (x, targets_for(x)), 1e-5)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("bad", [9, -1])
def test_a_bad_class_is_reported(loss, bad):
    loss(numbers((3, 4)).cuda(), cresset.tensor([0, bad, 1]).cuda())
    with pytest.raises(IndexError, match=f"{loss.__name__}: index {bad} is out of bounds for size 4, at position 1"):
        cresset.cuda.synchronize()
    assert cresset.ones(2, device="cuda").sum().item() == 2  # the device is still of use


@pytest.mark.parametrize("dtype", [cresset.bfloat16, cresset.float16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_autocast_gives_the_loss_in_float32(dtype, reduction):
    scores, classes = cresset.randn(37, 11).to(dtype), cresset.randint(0, 11, (37,))

    def loss_and_gradient(scores):
        scores = scores.clone().requires_grad_()
        with cresset.autocast("cuda", dtype=dtype):
            loss = cresset.nn.functional.cross_entropy(scores, classes.to(scores.device), reduction=reduction)
        (loss.sum() / 3).backward()
        return loss.detach().cpu(), scores.grad.cpu()

    (loss, grad), (expected, expected_grad) = loss_and_gradient(scores.cuda()), loss_and_gradient(scores.float())
    assert loss.dtype == cresset.float32 and grad.dtype == dtype
    cresset.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    cresset.testing.assert_close(grad.float(), expected_grad.to(dtype).float(), rtol=1e-2, atol=1e-4)
