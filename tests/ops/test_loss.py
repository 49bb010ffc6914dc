"""nll_loss and cross_entropy: values that a reader can work out, every reduction and shape, gradients of both
orders."""

import math

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import gradcheck, gradgradcheck

SHAPES = {
    "rows": ((3, 4), (3,)),
    "one": ((4,), ()),
    "places": ((2, 4, 3), (2, 3)),
    "many places": ((2, 4, 3, 100), (2, 3, 100)),
}


def scores(shape):
    count = math.prod(shape)
    return (cresset.arange(count, dtype=cresset.float64) * 0.7).sin().reshape(shape) * 2


def classes(shape, count=4):
    return (cresset.arange(math.prod(shape)) * 7 % count).reshape(shape)


def by_hand(x, target, weight, ignore_index, reduction, smoothing):
    """The definition, one sample at a time, in Python."""
    dim = 1 if x.ndim > 1 else 0
    rows = x.movedim(dim, -1).reshape(-1, x.size(dim)).tolist()
    weight = [1.0] * x.size(dim) if weight is None else weight.tolist()
    losses, total = [], 0.0
    for row, t in zip(rows, target.reshape(-1).tolist(), strict=True):
        if t == ignore_index:
            losses.append(0.0)
            continue
        logs = [v - math.log(sum(math.exp(u) for u in row)) for v in row]
        spread = sum(w * v for w, v in zip(weight, logs, strict=True)) / len(row)
        losses.append(-(1 - smoothing) * weight[t] * logs[t] - smoothing * spread)
        total += weight[t]
    if reduction == "none":
        return cresset.tensor(losses, dtype=x.dtype).reshape(target.shape)
    return cresset.tensor(sum(losses) / (total if reduction == "mean" else 1), dtype=x.dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_is_its_definition(shape, reduction, weighted, smoothing):
    x, target = scores(SHAPES[shape][0]), classes(SHAPES[shape][1])
    weight = cresset.tensor([0.5, 1.0, 2.0, 0.25], dtype=x.dtype) if weighted else None
    ignore_index = 2 if target.ndim else -100
    got = F.cross_entropy(x, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=smoothing)
    expected = by_hand(x, target, weight, ignore_index, reduction, smoothing)
    assert got.shape == expected.shape and cresset.allclose(got, expected, rtol=1e-12)
    if not smoothing:
        logs = x.log_softmax(1 if x.ndim > 1 else 0)
        same = F.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
        assert cresset.allclose(same, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", ["rows", "one", "places"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradients_of_first_and_second_order(shape, reduction, smoothing):
    x, target = scores(SHAPES[shape][0]).requires_grad_(), classes(SHAPES[shape][1])
    weight = cresset.tensor([0.5, 1.0, 2.0, 0.25], dtype=x.dtype)
    for given in (None, weight):

        def loss(x, given=given):
            return F.cross_entropy(x, target, given, ignore_index=1, reduction=reduction, label_smoothing=smoothing)

        def likelihood(x, given=given):
            return F.nll_loss(x, target, given, ignore_index=1, reduction=reduction)

        assert gradcheck(loss, (x,)) and gradgradcheck(loss, (x,))
        assert gradcheck(likelihood, (x,))


def test_the_fused_gradient_is_that_of_ordinary_operators():
    x = scores((300, 2100)).float().requires_grad_()
    target = classes((300,), 2100).masked_fill(cresset.arange(300) % 50 == 3, -100)
    (fused,) = cresset.autograd.grad(F.cross_entropy(x, target), x)
    counted = target != -100
    probability = x.detach().softmax(1)
    probability[cresset.arange(300)[counted], target[counted]] -= 1
    assert cresset.allclose(fused, probability * counted.unsqueeze(1) / counted.sum(), atol=1e-9)
    assert (fused[3] == 0).all()


@pytest.mark.cpu_only("threads")
def test_a_large_gradient_is_the_same_with_any_number_of_threads():
    x = cresset.randn(
        2100, 1024, generator=cresset.Generator(cresset.get_default_device()).manual_seed(1)
    ).requires_grad_()
    target, threads = cresset.arange(2100) % 1024, cresset.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            cresset.set_num_threads(count)
            loss = F.cross_entropy(x, target, label_smoothing=0.1)
            results.append((loss.item(), cresset.autograd.grad(loss, x)[0]))
    finally:
        cresset.set_num_threads(threads)
    assert all(loss == results[0][0] and cresset.equal(grad, results[0][1]) for loss, grad in results)


def test_scores_of_half_types_are_computed_in_float():
    x = scores((5, 6)).to(cresset.bfloat16).requires_grad_()
    target = classes((5,), 6)
    loss = F.cross_entropy(x, target)
    wide = F.cross_entropy(x.detach().float(), target)
    assert loss.dtype is cresset.bfloat16 and loss.item() == wide.to(cresset.bfloat16).item()
    loss.backward()
    assert x.grad.dtype is cresset.bfloat16


def test_large_scores_neither_overflow_nor_lose_digits():
    x = cresset.tensor([[1e4, 1e4 + 1], [-1e4, -1e4 - 1]])
    assert F.cross_entropy(x, cresset.tensor([0, 0]), reduction="none").tolist() == pytest.approx(
        [math.log1p(math.e), math.log1p(1 / math.e)], rel=1e-6
    )


def test_nothing_to_count_gives_nan_or_zero():
    x, none = cresset.zeros(2, 3), cresset.tensor([-100, -100])
    assert F.cross_entropy(x, none).isnan() and F.cross_entropy(x, none, reduction="sum") == 0
    assert F.cross_entropy(x, none, reduction="none").tolist() == [0, 0]
    empty = cresset.zeros(0, dtype=cresset.int64)
    assert F.cross_entropy(cresset.zeros(0, 3), empty).isnan() and F.nll_loss(cresset.zeros(0, 3), empty).isnan()
    assert F.cross_entropy(cresset.zeros(0, 3), empty, reduction="none").shape == (0,)


def test_other_layouts_and_target_types():
    x, target = scores((6, 4)), classes((6,))
    expected = F.cross_entropy(x, target)
    assert F.cross_entropy(x.t().contiguous().t(), target) == expected
    assert F.cross_entropy(x, target.to(cresset.uint8)) == expected
    assert F.cross_entropy(cresset.cat([x, x], 1)[:, :4], cresset.stack([target, target], 1)[:, 0]) == expected


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
def test_what_is_refused(function, refused):
    x = cresset.zeros(2, 3, requires_grad=True)
    for wrong in (10, -1):
        with refused(IndexError, f"Target {wrong} is out of bounds. The 3 classes are numbered from 0 to 2"):
            function(x, cresset.tensor([0, wrong]))
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 3 classes"):
        function(x, cresset.tensor([0, 1]), cresset.ones(4))
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        function(x, cresset.tensor([0, 1]), cresset.ones(3, requires_grad=True))
    with pytest.raises(ValueError, match="batch_size"):
        function(x, cresset.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        function(x, cresset.tensor([0, 1]), reduction="middle")
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        function(cresset.zeros(2, 3, dtype=cresset.int64), cresset.tensor([0, 1]))


def test_the_node_is_called_as_in_pytorch():
    assert (
        F.cross_entropy(cresset.zeros(2, 3, requires_grad=True), cresset.tensor([0, 1])).grad_fn.name()
        == "NllLossBackward0"
    )


def test_shapes_alone_are_enough_on_the_meta_device():
    x, target = cresset.empty(2, 3, 5, device="meta"), cresset.empty(2, 5, dtype=cresset.int64, device="meta")
    assert F.cross_entropy(x, target, reduction="none").shape == (2, 5) and F.cross_entropy(x, target).shape == ()


@pytest.mark.parametrize("shape", ["rows", "one", "places"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_vmap_gives_the_losses_and_gradients_of_each_call(shape, reduction):
    x = cresset.stack([scores(SHAPES[shape][0]) + k * 0.1 for k in range(3)])
    target = cresset.stack([(classes(SHAPES[shape][1]) + k) % 4 for k in range(3)])
    weight = cresset.tensor([0.5, 1.0, 2.0, 0.25], dtype=x.dtype)

    def loss(x, target):
        return F.cross_entropy(x, target, weight, ignore_index=1, reduction=reduction, label_smoothing=0.2)

    def likelihood(x, target):
        return F.nll_loss(x, target, weight, ignore_index=1, reduction=reduction)

    for function in (loss, likelihood):
        each = cresset.stack([function(a, b) for a, b in zip(x, target, strict=True)])
        assert cresset.allclose(cresset.vmap(function)(x, target), each, equal_nan=True)
        gradient = cresset.func.grad(lambda a, b, function=function: function(a, b).sum())
        each = cresset.stack([gradient(a, b) for a, b in zip(x, target, strict=True)])
        assert cresset.allclose(cresset.vmap(gradient)(x, target), each, equal_nan=True)


def test_the_beta_of_smooth_l1_loss_is_an_integer_of_any_size():
    x, target = cresset.tensor([2.0**40]), cresset.tensor([0.0])
    assert F.smooth_l1_loss(x, target, beta=2**70) == 2.0**80 / 2.0**71
