"""Quantized tensors and models agree with PyTorch's: integers exactly, dynamic layers within a step of quantization."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch means to move all this to another package
        yield


def numbers(t, *shape, seed=1):
    n = 1
    for size in shape:
        n *= size
    return (t.arange(n, dtype=t.float64) * (0.37 + seed)).sin().float().reshape(shape) * 3


@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint32"])
@pytest.mark.parametrize("scale, zero_point", [(0.05, 3), (0.013, 100), (1.7, 0)])
def test_integers_are_the_same(dtype, scale, zero_point):
    ours, theirs = (
        t.quantize_per_tensor(numbers(t, 5, 7), scale, zero_point, getattr(t, dtype)) for t in (cresset, torch)
    )
    assert (
        ours.int_repr().tolist() == theirs.int_repr().tolist()
        and ours.dequantize().tolist() == theirs.dequantize().tolist()
    )
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("axis", [0, 1])
def test_channels_are_the_same(axis):
    def program(t):
        n = (4, 5)[axis]
        scales, zeros = t.arange(1, n + 1).float() * 0.03, t.arange(n)
        q = t.quantize_per_channel(numbers(t, 4, 5), scales, zeros, axis, t.qint8)
        return q.int_repr().tolist(), q.dequantize().tolist(), repr(q), q.q_per_channel_axis()

    assert program(cresset) == program(torch)


@pytest.mark.parametrize("dtype", ["qint8", "quint8"])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_scales_from_extremes_are_the_same(dtype, reduce_range):
    for seed in range(5):
        made = [
            t.quantize_per_tensor_dynamic(numbers(t, 9, seed=seed), getattr(t, dtype), reduce_range)
            for t in (cresset, torch)
        ]
        assert made[0].q_scale() == made[1].q_scale() and made[0].q_zero_point() == made[1].q_zero_point()


def test_imitations_are_the_same():
    def program(t):
        x = numbers(t, 4, 5).requires_grad_()
        y = t.fake_quantize_per_tensor_affine(x, 0.1, 2, -5, 5)
        y.sum().backward()
        z = t.fake_quantize_per_channel_affine(
            x, t.tensor([0.1, 0.2, 0.3, 0.4]), t.tensor([0, 1, 2, 3], dtype=t.int32), 0, -5, 5
        )
        return y.tolist(), x.grad.tolist(), z.tolist()

    assert program(cresset) == program(torch)


@pytest.mark.parametrize(
    "name, options",
    [
        ("MinMaxObserver", {}), ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
        ("MinMaxObserver", {"reduce_range": True}),
        ("MovingAverageMinMaxObserver", {}), ("PerChannelMinMaxObserver", {}),
        ("PerChannelMinMaxObserver", {"ch_axis": 1}),
        ("MovingAveragePerChannelMinMaxObserver", {}),
    ],
)  # fmt: skip
def test_observers_are_the_same(name, options):
    def program(t):
        observer = getattr(t.ao.quantization, name)(
            **{k: getattr(t, v) if isinstance(v, str) else v for k, v in options.items()}
        )
        for seed in range(3):
            observer(numbers(t, 6, 4, seed=seed) * (seed + 1))
        scale, zero_point = observer.calculate_qparams()
        return scale.tolist(), zero_point.tolist()

    ours, theirs = program(cresset), program(torch)
    assert ours[0] == pytest.approx(theirs[0]) and ours[1] == theirs[1]


def models():
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    ours = cresset.nn.Sequential(cresset.nn.Linear(16, 32), cresset.nn.ReLU(), cresset.nn.Linear(32, 4))
    ours.load_state_dict({key: cresset.tensor(value.tolist()) for key, value in theirs.state_dict().items()})
    return ours, theirs


def test_dynamic_models_agree_within_a_step():
    ours, theirs = (
        t.ao.quantization.quantize_dynamic(m, {t.nn.Linear}, dtype=t.qint8)
        for t, m in zip((cresset, torch), models(), strict=True)
    )
    assert ours[0].weight().int_repr().tolist() == theirs[0].weight().int_repr().tolist()
    assert repr(ours) == repr(theirs)
    x = numbers(torch, 8, 16)
    first = theirs[0](x)
    step = (x.max() - x.min()).item() / 127 * theirs[0].weight().dequantize().abs().sum(1).max().item() / 2
    assert (torch.tensor(ours[0](cresset.tensor(x.tolist())).tolist()) - first).abs().max().item() <= step
    assert (torch.tensor(ours(cresset.tensor(x.tolist())).tolist()) - theirs(x)).abs().max().item() < 0.05


def test_static_models_agree_within_a_step():
    def program(t, model):
        q = t.ao.quantization
        wrapped = q.QuantWrapper(model).eval()
        wrapped.qconfig = q.default_qconfig
        ready = q.prepare(wrapped)
        x = numbers(t, 8, 16)
        ready(x)
        small = q.convert(ready)
        return small, small(x).tolist()

    (ours, got), (theirs, expected) = (program(t, m) for t, m in zip((cresset, torch), models(), strict=True))
    assert (
        ours.module[2].scale == pytest.approx(theirs.module[2].scale)
        and ours.module[2].zero_point == theirs.module[2].zero_point
    )
    assert (torch.tensor(got) - torch.tensor(expected)).abs().max().item() <= theirs.module[2].scale * 1.01
