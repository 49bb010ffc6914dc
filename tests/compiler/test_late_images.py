"""Convolutional networks in compiled regions: normalization, activation and pooling are computed together, to eager's
bits."""

import copy

import pytest

import cresset
from cresset import _native, nn
from cresset.nn import functional as F


@pytest.fixture(autouse=True)
def small_tensors_are_late():
    least = _native.set_late_elements(1)
    yield
    _native.set_late_elements(least)


def block(channels=24, pool=None, **settings):
    return nn.Sequential(
        nn.Conv2d(16, channels, 3, padding=1), nn.BatchNorm2d(channels, **settings), nn.ReLU(), pool or nn.MaxPool2d(2)
    )


def images(*shape, seed=0):
    return cresset.randn(shape or (4, 16, 17, 19), generator=cresset.Generator().manual_seed(seed))


def bits(tensors):
    return [t.view(cresset.int32) if t.dtype == cresset.float32 else t for t in tensors]


def step(model, run, x, scale=1.0):
    x = x.clone().requires_grad_()
    y = run(x)
    (y * scale).square().sum().backward()
    return [y, x.grad, *(p.grad for p in model.parameters()), *model.buffers()]


def check(model, x, **settings):
    """A training step gives eager's results, gradients and statistics."""
    other = copy.deepcopy(model)
    for _ in range(2):
        got, expected = step(model, cresset.compile(model), x, **settings), step(other, other, x, **settings)
        assert all(cresset.equal(a, b) for a, b in zip(bits(got), bits(expected), strict=True))


def test_what_is_computed_together():
    model = block(16)

    def program(x):
        model(x).square().sum().backward()

    groups = [g["calls"] for g in cresset.compiler.explain(program)(images()).groups]
    assert ["native_batch_norm", "relu"] in groups
    assert ["_max_pool_gradient", "relu backward of input 0"] in groups  # summed as it is made
    assert ["_batch_norm_backward"] in groups


@pytest.mark.parametrize("channels", [1, 3, 16, 24, 40])
@pytest.mark.parametrize("size", [(17, 19), (16, 18)])
def test_a_block_gives_eagers_bits(channels, size):
    check(block(channels), images(4, 16, *size))


def test_without_gradients():
    model, x = block().eval(), images(4, 16, 16, 16)
    with cresset.no_grad():
        assert ["native_batch_norm", "relu"] in [g["calls"] for g in cresset.compiler.explain(model)(x).groups]
        assert cresset.equal(cresset.compile(model)(x), model(x))


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(2, stride=3),
        nn.MaxPool2d((3, 2)),
        nn.MaxPool2d((2, 3), padding=(0, 1)),
        nn.MaxPool2d((1, 2), stride=2),
        nn.MaxPool2d(3, stride=2),  # windows that meet
        nn.MaxPool2d(2, ceil_mode=True),
        nn.MaxPool2d(2, dilation=2),
        nn.AdaptiveMaxPool2d((17, 19)),
        nn.AvgPool2d(2),
        nn.Identity(),
    ],
    ids=str,
)
def test_pooling_of_every_kind(pool):
    check(block(pool=pool), images())
    check(block(pool=pool), images(4, 16, 16, 18))


@pytest.mark.parametrize("settings", [{"affine": False}, {"track_running_stats": False}, {"momentum": None}], ids=str)
def test_normalizations_of_every_kind(settings):
    check(block(**settings), images())


def test_in_evaluation():
    model = block()
    model(images(seed=1))
    check(model.eval(), images())


def test_in_double_precision_and_without_a_batch_of_several():
    check(block().double(), images().double())
    check(block(), images(1, 16, 40, 40))


def test_several_blocks_with_a_sum_of_both_ways():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
            self.norms = nn.ModuleList([nn.BatchNorm2d(16), nn.BatchNorm2d(16)])

        def forward(self, x):
            y = F.relu(self.norms[0](self.first(x)))
            return F.relu(x + self.norms[1](self.second(y)))

    check(nn.Sequential(Residual(), Residual(), nn.MaxPool2d(2)), images())


def test_a_gradient_of_minus_zero_becomes_zero():
    check(block(), images(), scale=-0.0)


def test_not_a_number_and_infinity():
    x = images()
    x[0, 0, 0, 0], x[1, 1, 1, 1] = float("nan"), float("inf")
    check(block(), x)


def test_what_is_normalized_may_be_written_to_before_it_is_read():
    model = nn.Sequential(nn.Conv2d(16, 24, 3), nn.BatchNorm2d(24))

    def program(x):
        with cresset.no_grad():
            y = model[0](x)
            z = model[1](y)
            y.add_(1)
            model[1].weight.mul_(2)
            return z, y

    other, x = copy.deepcopy(model), images()
    got = cresset.compile(program)(x)
    model = other
    assert all(cresset.equal(a, b) for a, b in zip(got, program(x), strict=True))


def test_a_pooled_gradient_may_be_written_to_before_it_is_read():
    x = images()
    y, indices = F.max_pool2d(nn.Conv2d(16, 24, 3)(x), 2, return_indices=True)

    def program(grad):
        grad = F.conv2d(grad, cresset.ones(24, 24, 1, 1))
        dx = cresset._max_pool_gradient(grad, indices, (4, 24, 15, 17), 2, (2, 2, 2, 2, 0, 0, 1, 1))
        grad.mul_(2)
        return dx, grad

    grad = cresset.ones_like(y).detach()
    with cresset.no_grad():
        got, expected = cresset.compile(program)(grad), program(grad)
    assert all(cresset.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_it_is_differentiated_twice():
    model = block()
    other = copy.deepcopy(model)
    results = []
    for run, m in ((cresset.compile(model), model), (other, other)):
        x = images().requires_grad_()
        (grad,) = cresset.autograd.grad(run(x).square().sum(), x, create_graph=True)
        grad.square().sum().backward()
        results.append([x.grad, *(p.grad for p in m.parameters())])
    assert all(cresset.equal(a, b) for a, b in zip(*results, strict=True))


def test_the_gradient_of_a_pooling_may_come_in_the_plain_order():
    model = nn.Sequential(*block(16), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    check(model, images())
    groups = cresset.compiler.explain(lambda x: model(x).square().sum().backward())(images()).groups
    assert ["_max_pool_gradient", "relu backward of input 0"] in [g["calls"] for g in groups]
