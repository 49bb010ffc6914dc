"""Quantized tensors, operators, models and checkpoints agree with PyTorch's: integers exactly."""

import io
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


OPERATORS = {
    "add": lambda o, a, b, z: o.add(a, b, 0.05, z + 77),
    "add_relu": lambda o, a, b, z: o.add_relu(a, b, 0.05, z + 77),
    "mul": lambda o, a, b, z: o.mul(a, b, 0.05, z + 77),
    "mul_relu": lambda o, a, b, z: o.mul_relu(a, b, 0.05, z + 77),
    "matmul": lambda o, a, b, z: o.matmul(a, b.t().contiguous(), 0.5, z + 77),
    "cat": lambda o, a, b, z: o.cat([a, b], 0, 0.05, z + 77),
    "cat of the first's scale": lambda o, a, b, z: o.cat([a, b], 1, None, None),
    "add_scalar": lambda o, a, b, z: o.add_scalar(a, 0.7),
    "add_scalar far up": lambda o, a, b, z: o.add_scalar(a, 30.0),
    "add_scalar far down": lambda o, a, b, z: o.add_scalar(a, -100.5),
    "mul_scalar": lambda o, a, b, z: o.mul_scalar(a, 0.7),
    "mul_scalar below zero": lambda o, a, b, z: o.mul_scalar(a, -3.2),
    "mul_scalar zero": lambda o, a, b, z: o.mul_scalar(a, 0.0),
    "sigmoid": lambda o, a, b, z: o.sigmoid(a, 1 / 256, z),
    "softmax": lambda o, a, b, z: o.softmax(a, -1, 1 / 256, z),
    "hardswish": lambda o, a, b, z: o.hardswish(a, 0.05, z + 77),
    "elu": lambda o, a, b, z: o.elu(a, 0.05, z + 77, 0.7),
    "celu": lambda o, a, b, z: o.celu(a, 0.05, z + 77, 0.7),
    "leaky_relu": lambda o, a, b, z: o.leaky_relu(a, 0.01, False, 0.05, z + 77),
    "relu6": lambda o, a, b, z: o.relu6(a),
    "clamp": lambda o, a, b, z: o.clamp(a, -1.0, 2.0),
    "threshold": lambda o, a, b, z: o.threshold(a, 0.3, 0.1),
    "layer_norm": lambda o, a, b, z: o.layer_norm(a, [64], None, None, 1e-5, 0.05, z + 77),
}


def grid(t, scale, zero_point, signed, step):
    """All integers of a dtype, in an order of its own; 64 in a row, as PyTorch's vectors are at most that long."""
    integers = (t.arange(64 * 64) * step) % 256 - (128 if signed else 0)
    kind = t.int8 if signed else t.uint8
    return t._make_per_tensor_quantized_tensor(integers.to(kind).reshape(64, 64), scale, zero_point)


@pytest.mark.parametrize("signed", [False, True], ids=["quint8", "qint8"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_the_same(name, signed):
    def program(t):
        low = -128 if signed else 0
        a, b = grid(t, 0.037, low + 60, signed, 1), grid(t, 0.0213, low + 130, signed, 37)
        r = OPERATORS[name](t.ops.quantized, a, b, low)
        return r.int_repr().tolist(), r.q_scale(), r.q_zero_point(), str(r.dtype)

    assert program(cresset) == program(torch)


CALLS = {
    "max_pool1d": lambda f, x: f.max_pool1d(x[0], 2),
    "max_pool2d": lambda f, x: f.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda f, x: f.avg_pool2d(x, 2),
    "avg_pool2d of what is there": lambda f, x: f.avg_pool2d(x, 3, 2, 1, False, False),
    "adaptive_avg_pool2d": lambda f, x: f.adaptive_avg_pool2d(x, (3, 5)),
    "mean": lambda f, x: x.mean((2, 3)),
    "relu": lambda f, x: f.relu(x),
    "relu6": lambda f, x: f.relu6(x),
    "hardtanh": lambda f, x: f.hardtanh(x, -1.0, 0.5),
    "sigmoid": lambda f, x: x.sigmoid(),
    "tanh": lambda f, x: x.tanh(),
    "hardsigmoid": lambda f, x: f.hardsigmoid(x),
    "leaky_relu": lambda f, x: f.leaky_relu(x, 0.1),
    "threshold": lambda f, x: f.threshold(x, 0.1, 0.2),
    "chunk": lambda f, x: x.chunk(2, 1)[1],
    "unbind": lambda f, x: x.unbind(0)[0],
    "pad": lambda f, x: f.pad(x, (1, 2, 0, 1)),
    "sort": lambda f, x: x.sort(-1)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_quantized_tensors_are_the_same(name):
    def program(t):
        x = grid(t, 0.037, 61, False, 7).reshape(2, 8, 16, 16)
        r = CALLS[name](t.nn.functional, x)
        return r.int_repr().tolist(), r.q_scale(), r.q_zero_point()

    assert program(cresset) == program(torch)


def weight_of(t, shape, per_channel):
    w = numbers(t, *shape, seed=0.7)
    if not per_channel:
        return t.quantize_per_tensor(w, 0.024, 0, t.qint8)
    scales = w.abs().reshape(shape[0], -1).max(1)[0] / 127.5
    return t.quantize_per_channel(w, scales, t.zeros(shape[0], dtype=t.int64), 0, t.qint8)


@pytest.mark.parametrize("per_channel", [False, True], ids=["one scale", "channels"])
@pytest.mark.parametrize("relu", ["", "_relu"])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_maps_are_the_same(per_channel, relu, bias):
    def program(t):
        o = t.ops.quantized
        packed = o.linear_prepack(weight_of(t, (24, 50), per_channel), numbers(t, 24) if bias else None)
        x = numbers(t, 3, 7, 50, seed=0.3)
        given = getattr(o, "linear" + relu)(t.quantize_per_tensor(x, 0.0531, 63, t.quint8), packed, 0.2, 60)
        dynamic = [o.linear_dynamic(x, packed, reduced).tolist() for reduced in (True, False)]
        return given.int_repr().tolist(), dynamic, o.linear_dynamic(x * 1e-7, packed, True).tolist()

    assert program(cresset) == program(torch)


@pytest.mark.parametrize("per_channel", [False, True], ids=["one scale", "channels"])
@pytest.mark.parametrize("relu", ["", "_relu"])
@pytest.mark.parametrize(
    "input, weight, how",
    [
        ((2, 16, 30), (8, 16, 3), ([2], [1], [1], 1)),
        ((2, 16, 13, 12), (8, 16, 3, 3), ([2, 1], [1, 2], [1, 2], 1)),
        ((2, 16, 9, 9), (8, 4, 3, 3), ([1, 1], [1, 1], [1, 1], 4)),
        ((2, 16, 9, 9), (16, 1, 3, 3), ([1, 1], [1, 1], [1, 1], 16)),
        ((1, 4, 7, 6, 5), (8, 4, 3, 3, 3), ([1, 1, 1], [1, 1, 1], [1, 1, 1], 1)),
    ],
    ids=["1d", "2d", "groups", "depthwise", "3d"],
)
def test_convolutions_are_the_same(input, weight, how, relu, per_channel):
    def program(t):
        o, name = t.ops.quantized, f"conv{len(input) - 2}d"
        packed = getattr(o, name + "_prepack")(weight_of(t, weight, per_channel), numbers(t, weight[0]), *how)
        x = t.quantize_per_tensor(numbers(t, *input, seed=0.3), 0.05, 61, t.quint8)
        return getattr(o, name + relu)(x, packed, 0.2, 60).int_repr().tolist()

    assert program(cresset) == program(torch)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reduce_range": True},
        {"dtype": "qint8", "qscheme": "per_tensor_symmetric"},
        {"quant_max": 127, "bins": 100},
    ],
    ids=["plain", "reduced", "symmetric", "few"],
)
def test_histograms_are_the_same(options):
    def program(t, seed):
        given = {k: getattr(t, v) if isinstance(v, str) else v for k, v in options.items()}
        observer = t.ao.quantization.HistogramObserver(**given, **({"quant_min": 0} if "quant_max" in given else {}))
        for step in range(3):
            x = numbers(t, 700, seed=seed) * (step + 1)
            observer(x.relu() if seed % 2 else x**3)
        return [p.tolist() for p in observer.calculate_qparams()], repr(observer), observer.histogram.tolist()

    for seed in range(4):
        assert program(cresset, seed) == program(torch, seed)


@pytest.mark.parametrize(
    "name, options",
    [
        ("Linear", {}), ("Linear", {"bias": False}), ("LSTM", {}), ("LSTM", {"num_layers": 2, "bidirectional": True}),
        ("GRU", {"batch_first": True}), ("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {"nonlinearity": "relu"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_dynamic_layers_are_the_same(name, options, dtype):
    def program(t):
        layer = getattr(t.nn, name)(16, 8, **options)
        for seed, parameter in enumerate(layer.parameters()):
            parameter.data.copy_(numbers(t, *parameter.shape, seed=seed) / 8)
        small = t.ao.quantization.quantize_dynamic(t.nn.Sequential(layer), {type(layer)}, dtype=getattr(t, dtype))
        x = numbers(t, 3, 16, seed=0.1) if "Cell" in name else numbers(t, 5, 3, 16, seed=0.1)
        result = small(x)
        while isinstance(result, tuple):
            result = result[0]
        return repr(small), result

    (ours, got), (theirs, expected) = program(cresset), program(torch)
    assert ours == theirs
    if name == "Linear" and dtype == "qint8":
        assert got.tolist() == expected.tolist()
    torch.testing.assert_close(torch.tensor(got.tolist()), expected, rtol=0, atol=3e-7)  # the gates' last bits


class Program:
    """The same network of both libraries: layers of every kind that has a quantized form."""

    def __init__(self, t):
        q, nn = t.ao.quantization, t.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
                self.conv, self.norm, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
                self.add, self.cat = t.ao.nn.quantized.FloatFunctional(), t.ao.nn.quantized.FloatFunctional()
                self.pool, self.linear = nn.MaxPool2d(2), nn.Linear(32, 3)

            def forward(self, x):
                x = self.relu(self.norm(self.conv(self.quant(x))))
                x = self.cat.cat([self.pool(self.add.add(x, x)), self.pool(x)], 1)
                return self.dequant(self.linear(x.flatten(1)))

        self.t, self.net = t, Net().eval()
        for seed, parameter in enumerate(self.net.parameters()):
            parameter.data.copy_((numbers(t, *parameter.shape, seed=seed) * 4).round() / 16)  # so that sums are exact
        self.net.qconfig = q.get_default_qconfig("x86")
        ready = q.prepare(q.fuse_modules(self.net, ["conv", "norm", "relu"]))
        self.x = (numbers(t, 4, 1, 4, 4, seed=0.2) * 4).round() / 4
        ready(self.x)
        self.small = q.convert(ready)


def handed_over(state, to):
    file = io.BytesIO()
    (torch if to is cresset else cresset).save(state, file)
    file.seek(0)
    return to.load(file, weights_only=True)


def test_quantized_checkpoints_go_both_ways():
    ours, theirs = Program(cresset), Program(torch)
    state = theirs.small.state_dict()
    assert list(ours.small.state_dict()) == list(state) and ours.small.state_dict()._metadata == state._metadata
    ours.small.load_state_dict(handed_over(state, cresset))
    assert repr(ours.small) == repr(theirs.small) and repr(ours.small.state_dict()) == repr(state)
    assert ours.small(ours.x).tolist() == theirs.small(theirs.x).tolist()
    back = Program(torch).small
    back.load_state_dict(handed_over(ours.small.state_dict(), torch))
    assert back(theirs.x).tolist() == theirs.small(theirs.x).tolist()


@pytest.mark.parametrize("kind", ["one", "channels", "floating", "halves"])
def test_quantized_tensors_go_both_ways(kind):
    x, zeros = numbers(torch, 3, 5), torch.tensor([1, 2, 3])
    q = {
        "one": lambda: torch.quantize_per_tensor(x, 0.1, 3, torch.qint32).t(),
        "channels": lambda: torch.quantize_per_channel(x, zeros * 0.1, zeros, 0, torch.qint8),
        "floating": lambda: torch.quantize_per_channel(x, zeros * 0.1, zeros * 1.5, 0, torch.quint8),
        "halves": lambda: torch.quantize_per_channel(x, zeros * 0.5, zeros * 1.5, 0, torch.quint4x2),
    }[kind]()
    ours = handed_over(q, cresset)
    assert repr(ours) == repr(q) and ours.int_repr().tolist() == q.int_repr().tolist() and ours.stride() == q.stride()
    back = handed_over(ours, torch)
    assert repr(back) == repr(q) and back.int_repr().tolist() == q.int_repr().tolist()


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_training_with_imitation_has_the_same_losses(backend):
    x, y = torch.randn(3, 4, 3, 6, 6), torch.randint(5, (3, 4))
    start = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 5)
    ).state_dict()
    losses = []
    for lib, make in ((torch, lambda t: t), (cresset, lambda t: cresset.tensor(t.tolist()))):
        nn, q = lib.nn, lib.ao.quantization
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
        net.load_state_dict({name: make(value) for name, value in start.items()})
        net = nn.Sequential(q.QuantStub(), net, q.DeQuantStub()).train()
        net.qconfig = q.get_default_qat_qconfig(backend)
        net = q.prepare_qat(net)
        optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
        found = []
        for images, classes in zip(x, y, strict=True):
            loss = nn.functional.cross_entropy(net(make(images)), make(classes))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_training_with_a_batch_norm_inside_of_a_layer_is_the_same(bias):
    def program(t):
        q, nn = t.ao.quantization, t.nn
        t.manual_seed(0)
        model = nn.Sequential(
            q.QuantStub(), nn.Conv2d(2, 3, 3, padding=1, bias=bias), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(),
            nn.Linear(48, 4), nn.BatchNorm1d(4), q.DeQuantStub(),
        )  # fmt: skip
        with t.no_grad():
            for seed, parameter in enumerate(model.parameters()):
                parameter.copy_(numbers(t, *parameter.shape, seed=seed) / 3 + 0.5)
        model = q.fuse_modules_qat(model.train(), [["1", "2", "3"], ["5", "6"]])
        model.qconfig = q.get_default_qat_qconfig("x86")
        model = q.prepare_qat(model)
        optimizer = t.optim.SGD(model.parameters(), lr=0.01)
        for seed in range(3):
            optimizer.zero_grad()
            model(numbers(t, 5, 2, 4, 4, seed=seed)).square().mean().backward()
            optimizer.step()
        names = sorted(name for name in model.state_dict() if "fake_quant" not in name)
        seen = [model.state_dict()[name].double().flatten().tolist() for name in names]
        return names, seen, model.eval()(numbers(t, 5, 2, 4, 4)).tolist()

    (names, seen, out), (their_names, their_seen, their_out) = program(cresset), program(torch)
    assert names == their_names
    for name, one, other in zip(names, seen, their_seen, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4), name
    assert [value for row in out for value in row] == pytest.approx([v for row in their_out for v in row], abs=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("zero", ["int32", "float32", "float16"])
def test_imitated_channels_are_the_same(dtype, zero):
    def program(t):
        x = (numbers(t, 40, 4, seed=3) * 9).to(getattr(t, dtype))
        zeros = (numbers(t, 4) * 5).to(getattr(t, zero))
        return t.fake_quantize_per_channel_affine(x, numbers(t, 4, seed=2).abs() + 0.1, zeros, 1, -128, 127).float()

    assert program(cresset).tolist() == [pytest.approx(row, rel=1e-6, abs=1e-5) for row in program(torch).tolist()]


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d"])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_convolutions_that_quantize_their_input_are_the_same(name, reduce_range):
    def program(t):
        dims = int(name[-2])
        plain = getattr(t.nn, name)(2, 3, 2, stride=2, bias=name != "Conv1d")
        with t.no_grad():
            for seed, parameter in enumerate(plain.parameters()):
                parameter.copy_(numbers(t, *parameter.shape, seed=seed + 0.5) / 3)
        plain.qconfig = t.ao.quantization.default_dynamic_qconfig
        made = getattr(t.ao.nn.quantized.dynamic, name).from_float(plain)
        return repr(made), made(numbers(t, 2, 2, *(5,) * dims), reduce_range).flatten().tolist()

    (text, values), (their_text, theirs) = program(cresset), program(torch)
    assert text == their_text and values == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose2d"])
def test_reference_models_are_the_same(name):
    def program(t):
        q, nn = t.ao.quantization, t.nn
        layer = nn.Linear(4, 3) if name == "Linear" else getattr(nn, name)(4, 3, 2)
        with t.no_grad():
            for seed, parameter in enumerate(layer.parameters()):
                parameter.copy_(numbers(t, *parameter.shape, seed=seed + 0.5) / 3)
        model = nn.Sequential(q.QuantStub(), q.DeQuantStub(), layer, q.QuantStub(), q.DeQuantStub()).eval()
        model.qconfig = q.default_qconfig
        ready, x = q.prepare(model), numbers(t, *((3, 4) if name == "Linear" else (2, 4, 5, 5)))
        ready(x)
        made = q.convert(ready, is_reference=True)
        return repr(made[2]), sorted(made.state_dict()), made(x).flatten().tolist()

    ours, theirs = program(cresset), program(torch)
    assert ours[:2] == theirs[:2] and ours[2] == pytest.approx(theirs[2], abs=1e-5)
