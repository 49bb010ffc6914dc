"""Quantization by graphs: prepare_fx, convert_fx, and what says who is quantized how."""

import copy
import operator

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.ao import quantization as q
from cresset.ao.nn import intrinsic, qat, quantized
from cresset.ao.quantization.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
    get_native_backend_config,
    get_native_backend_config_dict,
)
from cresset.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
    StandaloneModuleConfigEntry,
)
from cresset.ao.quantization.fx.graph_module import ObservedGraphModule
from cresset.ao.quantization.fx.match_utils import MatchAllNode
from cresset.ao.quantization.quantize_fx import (
    convert_fx,
    convert_to_reference_fx,
    fuse_fx,
    prepare_fx,
    prepare_qat_fx,
)

USUAL = q.get_default_qconfig_mapping("x86")


class Calls(nn.Module):
    """A model that is a function of itself and its input."""

    def __init__(self, forward, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


def prepared(model, x, mapping=None, **options):
    made = prepare_fx(model.eval(), USUAL if mapping is None else mapping, (x,), **options)
    made(x)
    return made


def called(model, op):
    return [str(node.target) for node in model.graph.nodes if node.op == op]


def test_a_static_model_is_near_the_floating_point_one():
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(8, 4)).eval()  # fmt: skip
    x = cresset.randn(4, 3, 8, 8)
    expected = model(x)
    made = convert_fx(prepared(copy.deepcopy(model), x))
    assert type(made.get_submodule("0")) is intrinsic.quantized.ConvReLU2d
    assert type(made.get_submodule("5")) is quantized.Linear
    assert (made(x) - expected).abs().max() < 0.05 * expected.abs().max()


def test_observers_stand_where_numbers_become_integers():
    model = Calls(lambda m, x: F.relu(m.a(x) + m.b(x)), a=nn.Linear(4, 2), b=nn.Linear(4, 2))
    made = prepare_fx(model.eval(), USUAL, (cresset.ones(1, 4),))
    assert called(made, "call_module") == [
        "activation_post_process_0", "a", "activation_post_process_1", "b", "activation_post_process_2",
        "activation_post_process_3",
    ]  # fmt: skip
    made(cresset.randn(3, 4))
    converted = convert_fx(made)
    assert called(converted, "call_function")[1:] == ["quantized.add_relu"]


def test_what_only_moves_numbers_shares_the_observer_of_its_input():
    model = Calls(lambda m, x: m.pool(m.a(x)), a=nn.Conv2d(1, 1, 1), pool=nn.MaxPool2d(2))
    made = prepare_fx(model.eval(), USUAL, (cresset.ones(1, 1, 4, 4),))
    assert made.activation_post_process_1 is made.activation_post_process_2
    assert made.activation_post_process_0 is not made.activation_post_process_1


def test_what_is_joined_has_one_scale():
    x = cresset.randn(3, 4)
    model = Calls(lambda m, x: cresset.cat([m.a(x), m.b(x)], 1), a=nn.Linear(4, 2), b=nn.Linear(4, 2))
    made = convert_fx(prepared(model, x))
    assert made.a.scale == made.b.scale
    assert made.a(cresset.quantize_per_tensor(x, 0.1, 60, cresset.quint8)).q_scale() == made.a.scale


def test_sizes_are_left_as_they_are():
    x = cresset.randn(4, 6)
    model = Calls(lambda m, x: m.a(x).view(x.shape[0] * 2, x.size(1) // 3), a=nn.Linear(6, 4))
    assert convert_fx(prepared(model, x))(x).shape == (8, 2)


def test_weights_of_functions_are_packed():
    x = cresset.randn(4, 6)
    model = Calls(lambda m, x: F.linear(x, m.weight, m.bias), weight=nn.Parameter(cresset.randn(3, 6)),
                  bias=nn.Parameter(cresset.randn(3)))  # fmt: skip
    expected = model(x)
    made = convert_fx(prepared(model, x))
    assert "quantized.linear" in called(made, "call_function")
    assert (made(x) - expected).abs().max() < 0.1
    other = convert_fx(prepared(Calls(model.function, weight=nn.Parameter(cresset.randn(3, 6)),
                                      bias=nn.Parameter(cresset.randn(3))), x))  # fmt: skip
    state = made.state_dict()
    assert "_packed_weight_0" in state and "weight" not in state
    other.load_state_dict(state)
    assert other(x).equal(made(x))
    del state["_packed_weight_0"]
    with pytest.raises(RuntimeError, match="_packed_weight_0"):
        other.load_state_dict(state)


def test_a_layer_that_is_called_twice():
    x = cresset.randn(4, 4)
    model = Calls(lambda m, x: m.a(cresset.relu(m.a(x))), a=nn.Linear(4, 4))
    expected = model(x)
    made = convert_fx(prepared(model, x))
    assert type(made.a) is quantized.Linear
    assert (made(x) - expected).abs().max() < 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardswish(), nn.Linear(4, 4), nn.LeakyReLU()),
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 4), nn.Tanh()),
        lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ELU()),
        lambda: Calls(lambda m, x: F.hardswish(F.leaky_relu(m.a(x), 0.2)), a=nn.Linear(4, 4)),
        lambda: Calls(lambda m, x: cresset.matmul(m.a(x), m.a(x).transpose(0, 1)), a=nn.Linear(4, 4)),
        lambda: Calls(lambda m, x: m.a(x) * m.a(x) + 3, a=nn.Linear(4, 4)),
    ],
    ids=["hardswish", "sigmoid", "layer_norm", "functions", "matmul", "arithmetic"],
)
def test_a_reference_model_says_in_floating_point_what_integers_compute(make):
    cresset.manual_seed(0)
    x = cresset.randn(5, 4)
    observed = prepared(make(), x)
    reference, made = convert_to_reference_fx(copy.deepcopy(observed)), convert_fx(observed)
    kinds = {type(part).__module__ for part in reference.modules()}
    assert "cresset.ao.nn.quantized.reference" in kinds
    assert (made(x) - reference(x)).abs().max() < 0.05


def test_training_imitates_and_converts():
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)).train()
    x, target = cresset.randn(8, 3, 4, 4), cresset.randn(8, 2)
    made = prepare_qat_fx(model, q.get_default_qat_qconfig_mapping("x86"), (x,))
    assert type(made.get_submodule("0")) is intrinsic.qat.ConvBnReLU2d
    assert type(made.get_submodule("4")) is qat.Linear
    optimizer = cresset.optim.SGD(made.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        loss = F.mse_loss(made(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    trained = made.eval()(x)
    converted = convert_fx(made)
    assert type(converted.get_submodule("0")) is intrinsic.quantized.ConvReLU2d
    assert (converted(x) - trained).abs().mean() < 0.05
    with pytest.raises(AssertionError, match="training mode"):
        prepare_qat_fx(nn.Linear(1, 1).eval(), USUAL, (x,))


def test_a_dynamic_model_quantizes_each_input():
    x = cresset.randn(3, 4)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    expected = model(x)
    made = convert_fx(prepared(model, x, q.QConfigMapping().set_global(q.default_dynamic_qconfig)))
    assert type(made.get_submodule("0")) is intrinsic.quantized.dynamic.LinearReLU
    assert type(made.get_submodule("2")) is quantized.dynamic.Linear
    assert (made(x) - expected).abs().max() < 0.1


def test_fusing_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Conv2d(1, 1, 1), nn.ReLU()).eval()
    model.note = "kept"
    fused = fuse_fx(model, FuseCustomConfig().set_preserved_attributes(["note"]))
    assert called(fused, "call_module") == ["0", "2"]
    assert type(fused.get_submodule("2")) is intrinsic.ConvReLU2d
    assert fused.note == "kept"


class TestWhoGetsWhich:
    def kinds(self, mapping):
        x = cresset.randn(2, 4)
        model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Hardswish())
        made = convert_fx(prepared(model, x, mapping))
        made(x)
        return {
            name for name, part in made.named_modules()
            if type(part) in (quantized.Linear, quantized.Hardswish)
        }  # fmt: skip

    def of_all(self):
        return q.QConfigMapping().set_global(q.default_qconfig)

    def test_all(self):
        assert self.kinds(self.of_all()) == {"0", "1.0", "1.1", "2"}
        assert self.kinds(q.QConfigMapping()) == set()
        assert self.kinds({"": q.default_qconfig}) == {"0", "1.0", "1.1", "2"}

    def test_a_type(self):
        assert self.kinds(self.of_all().set_object_type(nn.Linear, None)) == {"2"}
        assert self.kinds(q.QConfigMapping().set_object_type(nn.Linear, q.default_qconfig)) == {"0", "1.0", "1.1"}

    def test_a_name_and_what_is_inside(self):
        assert self.kinds(self.of_all().set_module_name("1", None)) == {"0", "2"}
        assert self.kinds(self.of_all().set_object_type(nn.Linear, None).set_module_name("1.0", q.default_qconfig)) == {
            "1.0", "2",
        }  # fmt: skip

    def test_a_pattern_of_names(self):
        assert self.kinds(self.of_all().set_module_name_regex(r"1\.\d", None)) == {"0", "2"}

    def test_one_call_of_a_type_inside_a_module(self):
        mapping = self.of_all().set_module_name_object_type_order("1", nn.Linear, 1, None)
        assert self.kinds(mapping) == {"0", "1.0", "2"}

    def test_they_go_to_a_dict_and_back(self):
        mapping = self.of_all().set_object_type(nn.Linear, None).set_module_name("a", q.default_qconfig)
        mapping.set_module_name_regex("b.*", None).set_module_name_object_type_order("c", operator.add, 2, None)
        as_dict = mapping.to_dict()
        assert as_dict["module_name_object_type_order"] == [("c", operator.add, 2, None)]
        assert q.QConfigMapping.from_dict(as_dict).to_dict() == as_dict
        assert "module_name_qconfigs" in repr(mapping)
        with pytest.raises(ValueError, match="expected the keys"):
            q.QConfigMapping.from_dict({"types": []})

    def test_some_stay_as_they_are_when_it_is_converted(self):
        x = cresset.randn(2, 4)
        made = prepared(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), x)
        made = convert_fx(made, qconfig_mapping=q.get_default_qconfig_mapping().set_module_name("1", None))
        assert type(made.get_submodule("0")) is quantized.Linear
        assert type(made.get_submodule("1")) is nn.Linear
        assert made(x).shape == (2, 4)


class TestModulesOfOnesOwn:
    def test_inputs_and_results_may_be_integers(self):
        x = cresset.randn(2, 4)
        custom = PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
        made = convert_fx(prepared(nn.Sequential(nn.Linear(4, 4)), x, prepare_custom_config=custom))
        y = made(cresset.quantize_per_tensor(x, 0.05, 64, cresset.quint8))
        assert y.dtype == cresset.quint8
        assert called(made, "call_function") == []

    def test_modules_that_are_not_entered(self):
        class Odd(nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        x = cresset.randn(2, 4)
        model = nn.Sequential(nn.Linear(4, 4), Odd(), nn.Linear(4, 4))
        for custom in ({"non_traceable_module_class": [Odd]}, {"non_traceable_module_name": ["1"]}):
            made = convert_fx(prepared(copy.deepcopy(model), x, prepare_custom_config=custom))
            assert type(made.get_submodule("1")) is Odd
            assert type(made.get_submodule("2")) is quantized.Linear
            made(x)

    def test_modules_that_look_by_themselves(self):
        class Observed(nn.Module):
            @classmethod
            def from_float(cls, layer):
                made = cls()
                made.layer, made.qconfig = layer, layer.qconfig
                return made

            def forward(self, x):
                return self.layer(x)

        class Final(Observed):
            @classmethod
            def from_observed(cls, observed):
                made = cls()
                made.layer = observed.layer
                return made

        class Plain(nn.Linear):
            pass

        x = cresset.randn(2, 4)
        custom = PrepareCustomConfig().set_float_to_observed_mapping(Plain, Observed)
        made = prepared(nn.Sequential(Plain(4, 4)), x, prepare_custom_config=custom)
        assert type(made.get_submodule("0")) is Observed
        made = convert_fx(made, ConvertCustomConfig().set_observed_to_quantized_mapping(Observed, Final))
        assert type(made.get_submodule("0")) is Final

    def test_a_module_that_is_a_model_of_its_own(self):
        x = cresset.randn(2, 4)
        model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())).eval()
        custom = PrepareCustomConfig().set_standalone_module_name("1", USUAL, (x,), None, None)
        made = prepared(model, x, prepare_custom_config=custom)
        made = convert_fx(made)
        assert type(made.get_submodule("1").get_submodule("0")) is intrinsic.quantized.LinearReLU
        assert made(x).shape == (2, 4)

    def test_attributes_that_are_kept(self):
        x, model = cresset.randn(2, 4), nn.Sequential(nn.Linear(4, 4))
        model.note = "of the model"
        made = prepared(model, x, prepare_custom_config={"preserved_attributes": ["note"]})
        assert made.note == copy.deepcopy(made).note == "of the model"
        assert convert_fx(made, {"preserved_attributes": ["note"]}).note == "of the model"

    def test_settings_go_to_a_dict_and_back(self):
        entry = StandaloneModuleConfigEntry(USUAL, (), None, None)
        for kind, given in (
            (PrepareCustomConfig, {"standalone_module_class": {nn.Linear: entry}, "output_quantized_idxs": [0]}),
            (ConvertCustomConfig, {"observed_to_quantized_custom_module_class": {"static": {nn.Linear: nn.ReLU}}}),
            (FuseCustomConfig, {"preserved_attributes": ["a"]}),
        ):
            assert kind.from_dict(given).to_dict() == given
            with pytest.raises(ValueError, match="expected the keys"):
                kind.from_dict({"unknown": 1})


class TestBackends:
    def test_they_go_to_a_dict_and_back(self):
        as_dict = get_native_backend_config_dict()
        assert BackendConfig.from_dict(as_dict).to_dict() == as_dict
        pattern = BackendPatternConfig((nn.Linear, nn.ReLU)).set_fused_module(intrinsic.LinearReLU)
        pattern.add_dtype_config(DTypeConfig(cresset.quint8, is_dynamic=True))
        assert BackendPatternConfig.from_dict(pattern.to_dict()).to_dict() == pattern.to_dict()
        assert "LinearReLU" in repr(pattern) and "mine" in repr(BackendConfig("mine"))
        with pytest.raises(ValueError, match="no setting 'colour'"):
            BackendPatternConfig.from_dict({"colour": 1})

    def test_a_backend_of_ones_own_says_what_is_quantized(self):
        both = DTypeConfig(cresset.quint8, cresset.quint8, cresset.qint8)
        linear = BackendPatternConfig(nn.Linear).set_root_module(nn.Linear).add_dtype_config(both)
        backend = BackendConfig("one").set_backend_pattern_config(
            linear.set_reference_quantized_module(quantized.reference.Linear)
        )
        x = cresset.randn(2, 4)
        model = nn.Sequential(nn.Linear(4, 4), nn.Hardswish())
        made = convert_fx(prepared(model, x, backend_config=backend), backend_config=backend)
        assert type(made.get_submodule("0")) is quantized.Linear
        assert type(made.get_submodule("1")) is nn.Hardswish

    def test_patterns_are_known_by_their_last_call(self):
        nested = [
            BackendPatternConfig(pattern).nested_pattern
            for pattern in (nn.Linear, (nn.Linear, nn.ReLU), (nn.Conv2d, nn.BatchNorm2d, nn.ReLU))
        ]
        assert nested == [nn.Linear, (nn.ReLU, nn.Linear), (nn.ReLU, (nn.BatchNorm2d, nn.Conv2d))]

    def test_bounds_of_integers_and_scales(self):
        observer = q.MinMaxObserver(quant_min=0, quant_max=127, eps=2**-12)
        assert DTypeWithConstraints(cresset.quint8, 0, 127).allows(observer)
        assert not DTypeWithConstraints(cresset.quint8, 0, 63).allows(observer)
        assert DTypeWithConstraints(cresset.quint8, scale_min_lower_bound=2**-12).allows(observer)
        assert not DTypeWithConstraints(cresset.quint8, scale_min_lower_bound=2**-8).allows(observer)
        fixed = DTypeWithConstraints(cresset.quint8, scale_exact_match=1 / 256, zero_point_exact_match=0)
        assert fixed.allows(q.default_fixed_qparams_range_0to1_observer())
        assert not fixed.allows(q.default_fixed_qparams_range_neg1to1_observer())
        assert not fixed.allows(observer)

    def test_patterns_with_several_inputs(self):
        pattern = BackendPatternConfig()._set_pattern_complex_format((nn.ReLU, (operator.add, nn.Linear, MatchAllNode)))
        pattern._set_root_node_getter(lambda nodes: nodes[0]).add_dtype_config(
            DTypeConfig(cresset.quint8, cresset.quint8)
        )
        backend = BackendConfig("tree").set_backend_pattern_config(pattern)
        model = Calls(lambda m, x: m.relu(m.a(x) + x), a=nn.Linear(4, 4), relu=nn.ReLU())
        made = prepare_fx(model.eval(), USUAL, (cresset.ones(1, 4),), backend_config=backend)
        assert called(made, "call_module") == ["activation_post_process_0", "a", "relu", "activation_post_process_1"]

    def test_what_is_not_observed(self):
        config = {c.pattern: c for c in get_native_backend_config().configs}
        assert config["size"].observation_type is ObservationType.INPUT_OUTPUT_NOT_OBSERVED
        assert config[nn.Linear] != config[nn.Conv2d]
        assert config[nn.Linear].dtype_configs[0] == config[nn.Conv2d].dtype_configs[0]


def test_a_norm_and_a_relu_behind_a_linear_layer():
    x = cresset.randn(6, 4)
    observed = prepared(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()), x)
    reference, made = convert_to_reference_fx(copy.deepcopy(observed)), convert_fx(observed)
    assert type(reference.get_submodule("0")) is quantized.reference.Linear
    assert type(made.get_submodule("0")) is intrinsic.quantized.LinearReLU
    assert (made(x) - reference(x)).abs().max() < 0.02


def test_a_fused_layer_is_named_by_the_one_with_the_weight():
    x = cresset.randn(6, 4)
    for kind, found in ((nn.ReLU, intrinsic.quantized.LinearReLU), (nn.Linear, intrinsic.LinearReLU)):
        mapping = q.get_default_qconfig_mapping().set_object_type(kind, None)
        made = convert_fx(prepared(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), x, mapping))
        assert type(made.get_submodule("0")) is found


def test_layers_that_are_called_twice_are_fused_once():
    x = cresset.randn(4, 4)
    model = Calls(lambda m, x: m.relu(m.a(m.relu(m.a(x)))), a=nn.Linear(4, 4), relu=nn.ReLU())
    expected = model(x)
    made = convert_fx(prepared(model, x, q.QConfigMapping().set_global(q.default_dynamic_qconfig)))
    assert type(made.a) is intrinsic.quantized.dynamic.LinearReLU
    assert called(made, "call_module") == ["a", "a"]
    assert (made(x) - expected).abs().max() < 0.1


def test_what_cannot_be_done_is_said():
    x = cresset.ones(1, 4)
    with pytest.raises(NotImplementedError, match="not equalized"):
        prepare_fx(nn.Linear(4, 4).eval(), USUAL, (x,), _equalization_config=USUAL)
    with pytest.raises(TypeError, match="tuple of arguments"):
        prepare_fx(nn.Linear(4, 4).eval(), USUAL, None)
    with pytest.raises(TypeError, match="what prepare_fx gives"):
        convert_fx(nn.Linear(4, 4))


def test_an_observed_model_is_copied_with_what_it_saw():
    x = cresset.randn(2, 4)
    made = copy.deepcopy(prepared(nn.Sequential(nn.Linear(4, 4)), x))
    assert isinstance(made, ObservedGraphModule)
    state = convert_fx(made).state_dict()
    assert {"0_input_scale_0", "0_input_zero_point_0", "0.scale", "0.zero_point"} <= set(state)


def test_a_converted_model_loads_the_state_of_another():
    x = cresset.randn(8, 4)
    make = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))  # noqa: E731
    first, second = convert_fx(prepared(make(), x)), convert_fx(prepared(make(), 3 * x))
    second.load_state_dict(first.state_dict())
    assert second(x).equal(first(x))
