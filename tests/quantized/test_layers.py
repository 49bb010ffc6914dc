"""Quantized layers beside the floating-point ones that they stand in for, and the tables that say which those are."""

import copy

import pytest

import cresset
from cresset import nn
from cresset.ao import quantization
from cresset.ao.nn import intrinsic, quantized
from cresset.ao.quantization import quantization_mappings

LAYERS = {
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), (2, 4, 5, 5)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), (2, 4, 3, 3, 3)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 5)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 3, 2), (2, 4, 5, 5)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 2, 2, dilation=2), (1, 4, 3, 3, 3)),
    "Dropout": (lambda: nn.Dropout(0.3), (2, 4)),
    "ELU": (lambda: nn.ELU(0.5), (2, 40)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    "Hardswish": (lambda: nn.Hardswish(), (2, 40)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), (2, 4, 5)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True), (2, 4, 5, 5)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4, affine=True), (2, 4, 3, 3, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(5), (2, 4, 5)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.2), (2, 40)),
    "PReLU": (lambda: nn.PReLU(4), (2, 4, 5)),
    "ReLU6": (lambda: nn.ReLU6(), (2, 40)),
}
CONFIG = quantization.QConfig(
    activation=quantization.MinMaxObserver.with_args(dtype=cresset.quint8), weight=quantization.default_weight_observer
)


def quantize(layer, x):
    model = quantization.QuantWrapper(layer).eval()
    model.qconfig = CONFIG
    model = quantization.prepare(model)
    model(x)
    return quantization.convert(model)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_converted_and_computes_the_same_within_its_steps(name):
    make, shape = LAYERS[name]
    layer, x = make().eval(), cresset.randn(shape)
    for tensor in layer.parameters():
        nn.init.uniform_(tensor, 0.5, 1.0)
    model = quantize(layer, x)
    assert type(model.module) is getattr(quantized, name) and model.module._get_name() == f"Quantized{name}"
    taken = model.quant(x)
    result = model.module(taken)
    assert result.is_quantized and result.dtype == cresset.quint8
    weights = 16 * 0.004 * taken.dequantize().abs().max() if "Conv" in name else 0.005 * taken.dequantize().abs().max()
    assert float((result.dequantize() - layer(taken.dequantize())).abs().max()) <= 1.01 * result.q_scale() + weights


def test_a_norm_and_a_relu_are_one_layer():
    model = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()).eval()
    fused = quantization.fuse_modules(model, ["0", "1"])
    assert type(fused[0]).__name__ == "BNReLU2d"
    x = cresset.randn(2, 3, 4, 4)
    made = quantize(fused, x)
    assert type(made.module[0]).__name__ == "BNReLU2d" and float(made(x).min()) == 0.0
    assert cresset.allclose(made(x), model(x), atol=0.05)


def test_a_linear_layer_and_a_relu_are_quantized_dynamically_as_one():
    model = quantization.fuse_modules(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), ["0", "1"])
    made, x = quantization.quantize_dynamic(model), cresset.randn(5, 4)
    assert type(made[0]) is intrinsic.quantized.dynamic.LinearReLU and float(made(x).min()) == 0.0
    assert cresset.allclose(made(x), model(x), atol=0.1)


def test_the_scale_of_a_layer_is_in_its_state():
    layer = quantized.LayerNorm((3,), nn.Parameter(cresset.ones(3)), nn.Parameter(cresset.zeros(3)), 0.5, 2)
    state = layer.state_dict()
    assert (float(state["scale"]), int(state["zero_point"])) == (0.5, 2)
    other = quantized.LayerNorm((3,), nn.Parameter(cresset.ones(3)), nn.Parameter(cresset.zeros(3)), 1.0, 0)
    other.load_state_dict(state)
    x = cresset.quantize_per_tensor(cresset.randn(2, 3), 0.1, 50, cresset.quint8)
    assert other(x).int_repr().equal(layer(x).int_repr())


def test_sigmoid_and_softmax_have_the_scale_they_are_given():
    x = cresset.quantize_per_tensor(cresset.tensor([[0.0, 0.0]]), 0.1, 50, cresset.quint8)
    assert quantized.Sigmoid(0.25, 1)(x).int_repr().tolist() == [[3, 3]]
    assert quantized.Softmax(1, 0.125, 2)(x).int_repr().tolist() == [[6, 6]]


class TestFunctions:
    def taken(self, *shape):
        return cresset.quantize_per_tensor(cresset.randn(shape), 0.1, 50, cresset.quint8)

    @pytest.mark.parametrize(
        "name, arguments",
        [
            ("avg_pool2d", (2,)), ("adaptive_avg_pool2d", (2,)), ("max_pool2d", (2,)), ("hardtanh", (-0.5, 0.5)),
            ("threshold", (0.13, 0.3)),
            ("leaky_relu", (0.5,)), ("interpolate", ((3, 5),)),
        ],
    )  # fmt: skip
    def test_what_keeps_the_scale(self, name, arguments):
        x = self.taken(2, 3, 4, 6)
        result = getattr(quantized.functional, name)(x, *arguments)
        expected = getattr(nn.functional, name)(x.dequantize(), *arguments)
        assert (result.q_scale(), result.q_zero_point(), result.shape) == (0.1, 50, expected.shape)
        assert cresset.allclose(result.dequantize(), expected, atol=0.051)

    def test_older_names_of_interpolate(self):
        x = self.taken(2, 3, 4, 6)
        for name, mode in (("upsample", "nearest"), ("upsample_nearest", "nearest"), ("upsample_bilinear", "bilinear")):
            with pytest.warns(UserWarning, match=f"{name} is deprecated"):
                result = getattr(quantized.functional, name)(x, (7, 9))
            corners = True if mode == "bilinear" else None
            expected = nn.functional.interpolate(x.dequantize(), (7, 9), mode=mode, align_corners=corners)
            assert cresset.allclose(result.dequantize(), expected, atol=0.051)

    def test_what_has_another_scale(self):
        x = self.taken(2, 30)
        for name in ("elu", "celu", "hardswish"):
            result = getattr(quantized.functional, name)(x, 0.05, 40)
            assert cresset.allclose(result.dequantize(), getattr(nn.functional, name)(x.dequantize()), atol=0.026)

    def test_layers_with_weights(self):
        x, weight = self.taken(2, 6), cresset.quantize_per_tensor(cresset.randn(3, 6), 0.1, 0, cresset.qint8)
        result = quantized.functional.linear(x, weight, cresset.ones(3), 0.2, 100)
        expected = nn.functional.linear(x.dequantize(), weight.dequantize(), cresset.ones(3))
        assert cresset.allclose(result.dequantize(), expected, atol=0.101)
        x, weight = self.taken(2, 2, 5), cresset.quantize_per_tensor(cresset.randn(3, 2, 3), 0.1, 0, cresset.qint8)
        result = quantized.functional.conv1d(x, weight, None, padding=1, scale=0.2, zero_point=100)
        expected = nn.functional.conv1d(x.dequantize(), weight.dequantize(), None, padding=1)
        assert cresset.allclose(result.dequantize(), expected, atol=0.101)

    @pytest.mark.parametrize(
        "call, error, words",
        [
            (lambda f, x: f.avg_pool2d(x.dequantize(), 2), ValueError, "Input to 'quantized.avg_pool2d' must be"),
            (lambda f, x: f.max_pool2d(x, 2, return_indices=True), NotImplementedError, "return_indices"),
            (lambda f, x: f.conv2d(x, x, None), NotImplementedError, "Only torch.qint8 is supported for weight"),
            (
                lambda f, x: f.conv2d(x, x, None, padding_mode="reflect"),
                NotImplementedError,
                "Only zero-padding is supported",
            ),
        ],
    )
    def test_what_is_refused(self, call, error, words):
        with pytest.raises(error, match=words):
            call(quantized.functional, self.taken(2, 3, 4, 4))


def test_the_tables_say_what_stands_in_for_what():
    assert quantization.get_static_quant_module_class(nn.Conv2d) is quantized.Conv2d
    assert quantization.get_dynamic_quant_module_class(nn.Linear) is quantized.dynamic.Linear
    with pytest.raises(AssertionError, match="does not have a corresponding quantized"):
        quantization.get_static_quant_module_class(nn.Sequential)
    assert quantization.get_static_quant_module_class(nn.Sequential, {nn.Sequential: nn.Identity}) is nn.Identity
    assert {nn.Linear, nn.LSTM, nn.Hardswish, nn.Sequential} <= quantization.get_default_qconfig_propagation_list()
    table = quantization_mappings.get_default_static_quant_module_mappings()
    table.clear()
    assert quantization_mappings.DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    assert quantization.get_quantized_operator(nn.functional.elu) is cresset.ops.quantized.elu
    with pytest.raises(AssertionError, match="does not have corresponding quantized op"):
        quantization.get_quantized_operator(nn.functional.relu)


@pytest.mark.parametrize(
    "make",
    [
        lambda: quantized.Conv2d(2, 4, 3, padding=1),
        lambda: quantized.ConvReLU1d(2, 4, 3),
        lambda: quantized.ConvTranspose2d(2, 4, 2),
    ],
    ids=["plain", "with relu", "transposed"],
)
def test_a_whole_convolution_is_copied_and_pickled(make, tmp_path):
    layer = make()
    weight = layer.weight()
    layer.set_weight_bias(
        cresset.quantize_per_tensor(cresset.randn(weight.shape), 0.1, 0, cresset.qint8), cresset.ones(4)
    )
    layer.scale, layer.zero_point = 0.5, 3
    x = cresset.quantize_per_tensor(cresset.randn(1, 2, *(5,) * (weight.dim() - 2)), 0.1, 50, cresset.quint8)
    cresset.save(layer, tmp_path / "layer.pt")
    for other in (copy.deepcopy(layer), cresset.load(tmp_path / "layer.pt", weights_only=False)):
        assert repr(other) == repr(layer) and other(x).int_repr().equal(layer(x).int_repr())


class TestConfigs:
    def model(self):
        return nn.Sequential(quantization.QuantStub(), nn.Linear(2, 2), nn.Linear(2, 2), quantization.DeQuantStub())

    def test_none_of_a_part_leaves_the_part_as_it_is(self):
        model = self.model()
        model.qconfig, model[2].qconfig, model[3].qconfig = CONFIG, None, None
        model = quantization.prepare(model.eval())
        model(cresset.randn(3, 2))
        model = quantization.convert(model)
        assert [type(part) for part in model] == [
            quantized.Quantize, quantized.Linear, nn.Linear, quantization.DeQuantStub
        ]  # fmt: skip

    def test_hooks_go_with_the_layer(self):
        model, seen = self.model(), []
        model[1].register_forward_pre_hook(lambda layer, inputs: seen.append("before"))
        model[1].register_forward_hook(lambda layer, inputs, output: seen.append("after"))
        model.qconfig = CONFIG
        model = quantization.prepare(model.eval())
        model(cresset.randn(3, 2))
        model = quantization.convert(model)
        assert len(model[1]._forward_hooks) == 1 and seen == ["before", "after"]
        model(cresset.randn(3, 2))
        assert seen == ["before", "after"] * 2

    def test_transposed_convolutions_have_one_scale(self):
        model = nn.Sequential(nn.ConvTranspose2d(1, 1, 1)).eval()
        model.qconfig = quantization.default_per_channel_qconfig
        with pytest.raises(AssertionError, match="Per channel weight observer is not supported"):
            quantization.prepare(model)
        with pytest.raises(ValueError, match="out_channels must be greater than 0"):
            quantized.ConvTranspose2d(1, 0, 1)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_that_quantize_their_input(dims):
    plain = getattr(nn, f"ConvTranspose{dims}d")(2, 3, 2, stride=2)
    plain.qconfig = quantization.default_dynamic_qconfig
    with pytest.warns(UserWarning, match="poor numerical accuracy"):
        made = getattr(cresset.ao.nn.quantized.dynamic, f"ConvTranspose{dims}d").from_float(plain)
    x = cresset.linspace(-3, 3, 2 * 3**dims).reshape(1, 2, *(3,) * dims)
    with cresset.no_grad():
        expected = plain(x).clamp(-3, 3)  # the scale of the result is that of the input
    assert (made(x) - expected).abs().max() < 0.1
    assert repr(made).startswith(f"DynamicQuantizedConvTranspose{dims}d(2, 3")
    with pytest.raises(ValueError, match="Input shape must be"):
        made(x[0])
    with pytest.raises(AssertionError, match="qconfig"):
        type(made).from_float(nn.Identity())


def between_stubs(layer):
    stub = quantization.QuantStub, quantization.DeQuantStub
    return nn.Sequential(stub[0](), stub[1](), layer, stub[0](), stub[1]()).eval()


@pytest.mark.parametrize("name", quantized.reference.__all__)
@pytest.mark.parametrize("config", [quantization.default_qconfig, quantization.default_per_channel_qconfig])
def test_reference_layers_compute_with_a_rounded_weight(name, config):
    if "Transpose" in name and config is quantization.default_per_channel_qconfig:
        return  # prepare refuses it
    dims = 0 if name == "Linear" else int(name[-2])
    layer = nn.Linear(4, 3) if name == "Linear" else getattr(nn, name)(4, 3, 2, stride=2)
    model = between_stubs(layer)
    model.qconfig = config
    ready = quantization.prepare(model)
    x = cresset.linspace(-2, 2, 8 * 5**dims).reshape(2, 4, *(5,) * dims)
    ready(x)
    made = quantization.convert(ready, is_reference=True)
    kind = getattr(quantized.reference, name)
    assert type(made[2]) is kind and repr(made[2]).startswith(f"Quantized{name}(Reference)(")
    weight = made[2].get_quantized_weight()
    assert weight.dtype == cresset.qint8 and made[2].get_weight().equal(weight.dequantize())
    assert (made[2].get_weight() - layer.weight).abs().max() < 0.02 and (made(x) - layer(x)).abs().max() < 0.1
    other = kind.from_float(layer, {"qscheme": None, "dtype": cresset.float32})
    other._init_weight_qparams({"qscheme": weight.qscheme(), "dtype": weight.dtype, "scale": 1.0, "zero_point": 0})
    other.load_state_dict(made[2].state_dict())
    assert other.get_weight().equal(made[2].get_weight())
    whole = quantization.get_static_quant_module_class(type(layer), is_reference=True)
    assert whole is kind and quantization.get_default_static_quant_reference_module_mappings()[type(layer)] is kind


def test_a_reference_layer_of_half_precision_rounds_its_weight_to_it():
    layer = nn.Linear(2, 1)
    made = quantized.reference.Linear.from_float(layer, {"qscheme": None, "dtype": cresset.float16})
    assert made.get_weight().equal(layer.weight.half().float())
    symmetric = {"qscheme": cresset.per_tensor_symmetric, "dtype": cresset.qint8}
    with pytest.raises(AssertionError, match="not supported in reference"):
        quantized.reference.Linear(2, 1, weight_qparams=symmetric)
