"""Quantized models: dynamic, static, and trained with imitation."""

import copy

import pytest

import cresset
from cresset import nn
from cresset.ao import quantization as q


def test_observers_find_scale_and_zero_point():
    x = cresset.tensor([[-1.0, 0.0], [2.0, 4.1]])
    observer = q.MinMaxObserver()
    assert observer(x) is x
    scale, zero = observer.calculate_qparams()
    assert scale.item() == pytest.approx(5.1 / 255) and zero.item() == 50
    symmetric = q.default_weight_observer()
    symmetric(x)
    assert (
        symmetric.calculate_qparams()[0].item() == pytest.approx(4.1 / 127.5)
        and symmetric.calculate_qparams()[1].item() == 0
    )
    channels = q.PerChannelMinMaxObserver(ch_axis=0)
    channels(x)
    assert channels.min_val.tolist() == [-1.0, 2.0] and channels.max_val.tolist() == pytest.approx([0.0, 4.1])
    moving = q.MovingAverageMinMaxObserver(averaging_constant=0.5)
    moving(cresset.tensor([0.0, 2.0]))
    moving(cresset.tensor([0.0, 4.0]))
    assert moving.max_val.item() == 3.0


def test_a_histogram_may_cut_off_a_rare_extreme():
    observer = q.HistogramObserver()
    observer(cresset.cat([cresset.linspace(-1, 1, 300000), cresset.tensor([20.0])]))
    assert observer.calculate_qparams()[0].item() == pytest.approx(2 / 255, rel=0.01)  # that of the range without it
    assert repr(observer) == "HistogramObserver(min_val=-1.0, max_val=20.0)"


def test_a_histogram_takes_over_its_counts_into_a_wider_range():
    observer = q.HistogramObserver(bins=4)
    observer(cresset.tensor([0.0, 0.5, 1.0]))
    assert observer.histogram.tolist() == [1.0, 0.0, 1.0, 1.0]
    observer(cresset.tensor([2.0]))  # two old bins in each of the first two new ones
    assert observer.histogram.tolist() == [1.0, 2.0, 0.0, 1.0]
    with pytest.warns(UserWarning, match="inf detected"):
        observer(cresset.tensor([float("inf")]))
    assert observer.max_val.item() == 2.0
    with pytest.raises(NotImplementedError, match="qscheme"):
        q.HistogramObserver(qscheme=cresset.per_channel_affine)


def test_a_dynamic_model_is_near_the_floating_point_one():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    small = q.quantize_dynamic(model, {nn.Linear}, dtype=cresset.qint8)
    assert isinstance(model[0], nn.Linear) and isinstance(small[0], nn.quantized.dynamic.Linear)
    assert small[0].weight().dtype == cresset.qint8 and small[0].weight().int_repr().dtype == cresset.int8
    x = cresset.randn(8, 16)
    assert (small(x) - model(x)).abs().max().item() < 0.05
    other = q.quantize_dynamic(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    other.load_state_dict(small.state_dict())
    assert other(x).tolist() == small(x).tolist() == copy.deepcopy(small)(x).tolist()
    with pytest.raises(NotImplementedError, match="Conv2d"):
        q.quantize_dynamic(nn.Sequential(nn.Conv2d(2, 2, 1)), {nn.Conv2d})


@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}], ids=["plain", "deep"]
)
def test_a_dynamic_lstm_is_near_the_floating_point_one(options):
    model = nn.LSTM(8, 6, **options).eval()
    small = q.quantize_dynamic(nn.Sequential(model), {nn.LSTM})[0]
    x = cresset.randn(5, 3, 8)
    (expected, (h, c)), (output, (small_h, small_c)) = model(x), small(x)
    assert output.shape == expected.shape and small_h.shape == h.shape and small_c.shape == c.shape
    assert (output - expected).abs().max().item() < 0.05 and (small_c - c).abs().max().item() < 0.05


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell], ids=lambda kind: kind.__name__)
def test_other_dynamic_recurrent_layers_are_near_the_floating_point_ones(kind):
    model = kind(8, 6).eval()
    small = q.quantize_dynamic(nn.Sequential(model), {kind})[0]
    assert repr(small) == f"DynamicQuantized{kind.__name__}(8, 6)"
    x = cresset.randn(5, 8)
    for ours, float_one in zip(cresset.pytree.tree_leaves(small(x)), cresset.pytree.tree_leaves(model(x)), strict=True):
        assert ours.shape == float_one.shape and (ours - float_one).abs().max().item() < 0.05


def test_state_dictionaries_have_the_names_of_pytorch():
    linear, conv = nn.quantized.Linear(2, 1), nn.quantized.Conv2d(1, 1, 1, bias=False)
    assert list(linear.state_dict()) == ["scale", "zero_point", "_packed_params.dtype", "_packed_params._packed_params"]
    assert list(conv.state_dict()) == ["weight", "bias", "scale", "zero_point"]
    assert conv.state_dict()["bias"] is None and linear.state_dict()["_packed_params.dtype"] == cresset.qint8
    with pytest.raises(RuntimeError, match="_packed_params.weight"):
        linear.load_state_dict({"scale": cresset.tensor(1.0), "zero_point": cresset.tensor(0)})
    assert conv.load_state_dict({}, strict=False).missing_keys == ["scale", "zero_point", "weight", "bias"]


def test_results_are_rounded_to_the_scale_of_a_layer():
    weight = cresset.quantize_per_tensor(cresset.tensor([[2.0], [-1.0]]), 1.0, 0, cresset.qint8)
    layer = nn.quantized.Linear(1, 2)
    layer.set_weight_bias(weight, cresset.tensor([1.0, 0.0]))
    layer.scale, layer.zero_point = 2.0, 10
    x = cresset.quantize_per_tensor(cresset.tensor([[3.0]]), 0.5, 1, cresset.quint8)
    assert layer(x).int_repr().tolist() == [[14, 8]]  # 7 / 2 and -3 / 2, to even, and 10
    conv = nn.quantized.Conv1d(1, 2, 1)
    conv.set_weight_bias(
        cresset.quantize_per_tensor(cresset.tensor([[[2.0]], [[-1.0]]]), 1.0, 0, cresset.qint8), layer.bias()
    )
    conv.scale, conv.zero_point = 2.0, 9
    assert conv(x.unsqueeze(0)).int_repr().tolist() == [[[12], [8]]]  # 3.5 + 9 and -1.5 + 9, to even


def test_products_of_integers_are_exact():
    weight = cresset.quantize_per_tensor(cresset.tensor([[1.0, -2.0], [3.0, 4.0]]), 1.0, 0, cresset.qint8)
    layer = nn.quantized.dynamic.Linear(2, 2)
    layer.set_weight_bias(weight, cresset.tensor([0.5, 0.0]))
    assert layer(cresset.tensor([[127.0, 0.0], [10.0, 20.0]])).tolist() == [[127.5, 381.0], [-29.5, 110.0]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU()
        self.linear, self.sum = nn.Linear(2 * 4 * 4, 3), nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.relu(self.norm(self.conv(self.quant(x))))
        x = self.sum.add(x, x)
        return self.dequant(self.linear(x.reshape(-1, 32)))


def test_a_static_model_is_near_the_floating_point_one():
    net = Net().eval()
    fused = q.fuse_modules(net, ["conv", "norm", "relu"])
    x = cresset.randn(4, 1, 4, 4)
    assert cresset.allclose(fused(x), net(x), atol=1e-5)
    fused.qconfig = q.default_qconfig
    ready = q.prepare(fused)
    ready(x)
    small = q.convert(ready)
    assert isinstance(small.conv, nn.quantized.ConvReLU2d) and isinstance(small.linear, nn.quantized.Linear)
    assert isinstance(small.sum, nn.quantized.QFunctional) and isinstance(small.quant, nn.quantized.Quantize)
    assert (small(x) - net(x)).abs().max().item() < 0.15
    with pytest.raises(RuntimeError, match="expected a quantized tensor"):
        small.linear(cresset.ones(1, 32))


def test_training_with_imitation_and_converting():
    cresset.manual_seed(0)  # a row of weights of one sign gets, as in PyTorch, another zero point when it is converted
    net = q.QuantWrapper(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))).train()
    net.qconfig = q.get_default_qat_qconfig("fbgemm")
    ready = q.prepare_qat(net)
    optimizer = cresset.optim.SGD(ready.parameters(), lr=0.1)
    x = cresset.randn(16, 4)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (ready(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    ready.eval().apply(q.disable_observer)
    small = q.convert(ready)
    assert isinstance(small.module[0], nn.quantized.Linear)
    assert (small(x) - ready(x)).abs().max().item() < 0.1


def test_float_functional_is_arithmetic_until_it_is_converted():
    f = nn.quantized.FloatFunctional()
    one, two = cresset.tensor([1.0]), cresset.tensor([2.0])
    assert f.add(one, two).item() == 3.0 and f.mul(two, two).item() == 4.0 and f.cat([one, two]).tolist() == [1.0, 2.0]
    assert f.add_relu(one, -two).item() == 0.0
    with pytest.raises(RuntimeError, match="not intended"):
        f(one)


def plain_net():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).eval()


class TestFusingByOnesOwnRules:
    def test_a_fuser_of_ones_own_is_called_and_its_modules_are_used(self):
        seen = []

        def fuser(modules, is_qat, more):
            seen.append(([type(m) for m in modules], is_qat, more))
            return [nn.Tanh(), nn.Identity()]

        net = q.fuse_modules(plain_net(), ["0", "1"], fuser_func=fuser)
        assert [type(m) for m in net] == [nn.Tanh, nn.Identity, nn.ReLU]
        q.fuse_modules_qat(plain_net(), [["0", "1"]], fuser_func=fuser)
        assert seen == [([nn.Linear, nn.BatchNorm1d], False, {}), ([nn.Linear, nn.BatchNorm1d], True, {})]

    def test_a_fuser_that_gives_too_few_modules_is_refused(self):
        with pytest.raises(ValueError, match="gave 1 modules for the 2"):
            q.fuse_modules(plain_net(), ["0", "1"], fuser_func=lambda modules, is_qat, more: modules[:1])

    def test_additional_rules_fuse_what_is_not_known(self):
        def fuse(is_qat, first, second):
            return nn.Sequential(first, second)

        custom = {"additional_fuser_method_mapping": {(nn.Linear, nn.Tanh): fuse}}
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).eval()
        with pytest.raises(NotImplementedError):
            q.fuse_modules(net, ["0", "1"])
        fused = q.fuse_modules(net, ["0", "1"], fuse_custom_config_dict=custom)
        assert isinstance(fused[0], nn.Sequential) and isinstance(fused[1], nn.Identity)
        with pytest.raises(ValueError, match="unknown key 'more'"):
            q.fuse_modules(net, ["0", "1"], fuse_custom_config_dict={"more": {}})

    def test_hooks_of_the_first_and_the_last_are_kept(self):
        net, seen = plain_net(), []
        net[0].register_forward_pre_hook(lambda m, x: seen.append("before"))
        net[2].register_forward_hook(lambda m, x, y: seen.append("after"))
        q.fuse_modules(net, ["0", "1", "2"])(cresset.ones(1, 4))
        assert seen == ["before", "after"]


class TestPreparingByOnesOwnRules:
    def watched(self, net, **how):
        net.qconfig = q.default_qconfig
        return [name for name, m in q.prepare(net, **how).named_modules() if hasattr(m, "activation_post_process")]

    def test_only_types_of_the_allow_list_are_observed(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Conv1d(1, 1, 1)).eval()
        assert self.watched(net) == ["0", "2"]
        assert self.watched(net, allow_list=[nn.Tanh]) == ["1"]
        assert self.watched(net, allow_list=set()) == []

    def test_modules_with_children_are_observed_when_they_are_named(self):
        net = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Linear(2, 2)).eval()
        assert self.watched(
            nn.Sequential(nn.ModuleDict({"a": nn.Linear(2, 2)})), observer_non_leaf_module_list=[nn.ModuleDict]
        ) == ["0"]
        assert self.watched(net) == ["1"]

    def test_a_module_of_ones_own_is_swapped_in_both_steps(self):
        class Mine(nn.Module):
            def forward(self, x):
                return x

        class Watched(Mine):
            @classmethod
            def from_float(cls, module):
                new = cls()
                new.qconfig = module.qconfig
                return new

        class Small(Mine):
            @classmethod
            def from_observed(cls, module):
                return cls()

        net = nn.Sequential(Mine())
        net.qconfig = q.default_qconfig
        ready = q.prepare(net, prepare_custom_config_dict={"float_to_observed_custom_module_class": {Mine: Watched}})
        assert type(ready[0]) is Watched and hasattr(ready[0], "activation_post_process")
        small = q.convert(
            ready, convert_custom_config_dict={"observed_to_quantized_custom_module_class": {Watched: Small}}
        )
        assert type(small[0]) is Small

    def test_children_that_are_not_traced_get_no_qconfig(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        net.qconfig = q.default_qconfig
        q.propagate_qconfig_(net, None, {"non_traceable_module_name": ["0"]})
        assert not hasattr(net[0], "qconfig") and net[1].qconfig is q.default_qconfig


def test_a_scale_that_is_precomputed_is_not_computed_again():
    net = q.QuantWrapper(nn.Linear(4, 4)).train()
    net.qconfig = q.get_default_qat_qconfig("qnnpack")
    ready = q.prepare_qat(net)
    ready(cresset.randn(8, 4))
    scale = float(ready.module.weight_fake_quant.activation_post_process.calculate_qparams()[0])
    with cresset.no_grad():
        ready.module.weight.mul_(5)
    kept = q.convert(ready, use_precomputed_fake_quant=True).module.weight().q_scale()
    new = q.convert(ready).module.weight().q_scale()
    assert kept == pytest.approx(scale) and new == pytest.approx(1.04 * scale, rel=1e-3)  # a moving average
    ready.apply(q.disable_observer)
    assert q.convert(ready).module.weight().q_scale() == pytest.approx(scale)


def test_a_weight_has_one_dtype():
    with pytest.raises(RuntimeError, match="Unsupported dtype torch.float64"):
        nn.quantized.Linear(2, 2, dtype=cresset.float64)


def test_versions_of_defaults_are_those_that_there_are():
    q.get_default_qconfig("x86", version=0), q.get_default_qat_qconfig("x86", version=1)
    with pytest.raises(AssertionError, match="Version number: 1 in get_default_qconfig is not supported"):
        q.get_default_qconfig("x86", version=1)
    with pytest.raises(AssertionError, match="Version number: 2 in get_default_qat_qconfig is not supported"):
        q.get_default_qat_qconfig("x86", version=2)


def test_observers_make_their_numbers_as_they_are_told():
    observer = q.MinMaxObserver(factory_kwargs={"dtype": cresset.float64})
    assert observer.eps.dtype == observer.min_val.dtype == cresset.float64
    assert q.PlaceholderObserver(eps=0.5).eps == 0.5 and q.NoopObserver(custom_op_name="mine").custom_op == "mine"


def test_only_what_stands_in_a_module_is_converted():
    layer = nn.Linear(2, 2)
    assert type(q.quantize_dynamic(layer, {nn.Linear})) is nn.Linear
    layer.qconfig = q.default_qconfig
    prepared = q.prepare(layer)
    prepared(cresset.ones(1, 2))
    plain = q.convert(prepared)
    assert type(plain) is nn.Linear and not list(plain.children()) and not plain._forward_hooks
    assert list(prepared.children())  # as it was: convert works on a copy


def test_zero_points_of_affine_schemes_are_int32_and_of_symmetric_ones_int64():
    values = cresset.tensor([[-1.0, 1.0], [0.0, 4.0]])
    for kind, dtype in (
        (q.MinMaxObserver(), cresset.int32),
        (q.HistogramObserver(), cresset.int32),
        (q.PerChannelMinMaxObserver(), cresset.int32),
        (q.MinMaxObserver(dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric), cresset.int64),
    ):
        kind(values)
        assert kind.calculate_qparams()[1].dtype == dtype


@pytest.mark.parametrize("dtype, bounds", [("int8", (-128, 127)), ("uint8", (0, 255)), ("int16", (-32768, 32767))])
def test_observers_take_plain_integers(dtype, bounds):
    observer = q.MinMaxObserver(dtype=getattr(cresset, dtype))
    assert (observer.quant_min, observer.quant_max) == bounds
    narrow = q.MinMaxObserver(dtype=getattr(cresset, dtype), reduce_range=True)
    assert narrow.quant_max == (bounds[1] if dtype == "int16" else bounds[1] // 2)
    with pytest.raises(AssertionError, match="Default Observer only works for"):
        q.MinMaxObserver(dtype=cresset.float32)


def test_the_middle_of_unsigned_integers_stands_for_zero():
    observer = q.MinMaxObserver(dtype=cresset.uint8, qscheme=cresset.per_tensor_symmetric)
    observer(cresset.tensor([-1.0, 2.0]))
    assert observer.calculate_qparams()[1].item() == 128


def test_a_synchronized_norm_keeps_how_it_is_quantized():
    norm = cresset.nn.BatchNorm1d(2)
    norm.qconfig = q.default_qconfig
    assert cresset.nn.SyncBatchNorm.convert_sync_batchnorm(norm).qconfig is q.default_qconfig


@pytest.mark.parametrize("kind", ["PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"])
def test_what_an_observer_saw_stays_in_the_same_buffer(kind):
    observer = getattr(q, kind)()
    least = observer.min_val
    observer(cresset.tensor([[1.0, 3.0], [-2.0, 0.0]]))
    assert observer.min_val is least and least.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("observer", [q.MovingAverageMinMaxObserver, q.PerChannelMinMaxObserver])
def test_an_imitation_keeps_its_buffers_and_may_be_called_twice_before_backward(observer):
    fake, x = q.FakeQuantize(observer), cresset.tensor([[1.0, 3.0], [-2.0, 0.5]], requires_grad=True)
    scale, zero_point = fake.scale, fake.zero_point
    (fake(x) + fake(2 * x)).sum().backward()
    assert fake.scale is scale and fake.zero_point is zero_point and x.grad.shape == x.shape


def test_the_fused_imitation_has_running_extremes_and_their_scale():
    low, high = cresset.full((2,), float("inf")), cresset.full((2,), -float("inf"))
    scale, zero_point = cresset.ones(2), cresset.zeros(2, dtype=cresset.int32)
    on, off = cresset.tensor([1]), cresset.tensor([0])

    def imitate(x, observe, fake, symmetric=False):
        return cresset.fused_moving_avg_obs_fake_quant(
            x, observe, fake, low, high, scale, zero_point, 0.5, 0, 255, 0, True, symmetric
        )

    x = cresset.tensor([[-51.0, 0.3, 204.0], [0.0, 100.4, 510.0]], requires_grad=True)
    y = imitate(x, on, on)
    assert y.tolist() == [[-51.0, 0.0, 204.0], [0.0, 100.0, 510.0]]
    assert (scale.tolist(), zero_point.tolist()) == ([1.0, 2.0], [51, 0])
    y.sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
    imitate(3 * x.detach(), on, off)  # half of the way; the scale stays
    assert (low.tolist(), high.tolist(), scale.tolist()) == ([-102.0, 0.0], [408.0, 1020.0], [1.0, 2.0])
    assert imitate(x.detach(), off, on).tolist() == [[-52.0, 0.0, 204.0], [0.0, 100.0, 512.0]]
    imitate(x, off, on, symmetric=True)
    assert zero_point.tolist() == [128, 0]  # the middle, where zero is inside
    with pytest.raises(RuntimeError, match="`ch_axis` must be from 0 to 0"):
        cresset.fused_moving_avg_obs_fake_quant(
            x[0], on, on, low, high, scale, zero_point, 0.5, 0, 255, 1, per_row_fake_quant=True
        )


def test_the_fused_imitation_wants_running_means():
    with pytest.raises(AssertionError, match="only works with MovingAverageMinMaxObserver"):
        q.FusedMovingAvgObsFakeQuantize(observer=q.HistogramObserver)
    module = q.get_default_qat_qconfig("x86").weight()
    assert type(module) is q.FusedMovingAvgObsFakeQuantize
    module(cresset.ones(3, 2, 1, 1))
    assert module.scale.shape == (3,) and module.activation_post_process.max_val.tolist() == [1.0] * 3
    assert type(q.get_default_qat_qconfig("x86", version=0).weight()) is q.FakeQuantize


def test_zero_of_a_symmetric_uint16_is_the_middle():
    observer = q.MinMaxObserver(dtype=cresset.uint16, qscheme=cresset.per_tensor_symmetric)
    observer(cresset.tensor([-1.0, 2.0]))
    assert observer.calculate_qparams()[1].item() == 2**15


def test_an_observer_sees_results_before_the_hooks_of_the_program():
    net = q.QuantWrapper(nn.Linear(2, 2))
    net.module.register_forward_hook(lambda module, inputs, output: output * 1000)
    net.qconfig = q.QConfig(activation=q.MinMaxObserver, weight=q.default_weight_observer)
    ready = q.prepare(net.eval())
    ready(cresset.ones(1, 2))
    assert ready.module.activation_post_process.max_val.abs() < 10


def test_joins_and_recordings_of_observers_are_scripted():
    class Join(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.kept = nn.quantized.FloatFunctional(), q.RecordingObserver()

        def forward(self, x, y):
            return self.kept(self.f.mul_scalar(self.f.cat([x, y], dim=1), 2.0))

    program = cresset.jit.script(Join())
    assert program(cresset.ones(1, 1), cresset.zeros(1, 1)).tolist() == [[2.0, 0.0]]
    assert [x.tolist() for x in program.kept.get_tensor_value()] == [[[2.0, 0.0]]]


def test_an_observer_that_remembers_nothing_looks_at_what_goes_into_a_layer():
    class Latest(q.MovingAverageMinMaxObserver):
        def __init__(self, **kwargs):
            super().__init__(averaging_constant=1, **kwargs)

    model = nn.Sequential(nn.Linear(4, 2))
    model.qconfig = q.QConfig(activation=Latest, weight=q.default_weight_observer)
    prepared = q.prepare(model)
    prepared(cresset.tensor([[1.0, -3.0, 0.0, 7.0]]))
    observer = prepared[0].activation_post_process
    assert (observer.min_val.item(), observer.max_val.item()) == (-3.0, 7.0)
    prepared(cresset.tensor([[0.5, 0.0, 0.0, 0.0]]))
    assert observer.max_val.item() == 0.5
