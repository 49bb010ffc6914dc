"""Training with imitated quantization: fused layers with a batch norm inside, embeddings, layers with bounds."""

import copy

import pytest

import cresset
from cresset import nn
from cresset.ao import quantization as q
from cresset.ao.nn import intrinsic, qat, quantized
from cresset.ao.nn.intrinsic import qat as fused

X = cresset.tensor([[1.0, -2.0]])


def net(dims=2):
    conv, norm = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    return nn.Sequential(conv(2, 3, 3, padding=1), norm(3), nn.ReLU(), nn.Flatten())


def images(dims):
    return cresset.randn(4, 2, *(5,) * dims, generator=cresset.Generator().manual_seed(1))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("relu", [False, True])
def test_without_the_imitation_the_fused_layer_computes_what_its_parts_do(dims, relu):
    plain = net(dims)
    names = ["0", "1", "2"] if relu else ["0", "1"]
    together = q.fuse_modules_qat(copy.deepcopy(plain).train(), names)
    assert type(together[0]).__name__ == f"ConvBn{'ReLU' * relu}{dims}d"
    together.qconfig = q.get_default_qat_qconfig()
    made = q.prepare_qat(together).apply(q.disable_fake_quant)
    assert type(made[0]) is getattr(fused, type(together[0]).__name__)
    x = images(dims)
    assert made(x).allclose(plain(x), atol=1e-5)
    assert made[0].bn.running_mean.allclose(plain[1].running_mean, atol=1e-6)
    made.eval(), plain.eval()
    parts = plain[:3] if relu else plain[:2]
    assert made(x).allclose(plain(x), atol=1e-5) and made[0].to_float()(x).allclose(parts(x), atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_a_factor_of_zero_needs_the_way_without_division(bias):
    plain = nn.Sequential(nn.Conv2d(2, 3, 3, bias=bias), nn.BatchNorm2d(3))
    nn.init.zeros_(plain[1].weight)
    plain[1].weight.data[1] = 0.7
    nn.init.ones_(plain[1].bias)
    made = q.fuse_modules_qat(copy.deepcopy(plain).train(), ["0", "1"])
    made.qconfig = q.default_qat_qconfig
    made = q.prepare_qat(made).apply(q.disable_fake_quant).apply(q.disable_observer)
    x = images(2)
    assert copy.deepcopy(made)(x).isnan().any()
    made[0]._enable_slow_path_for_better_numerical_stability = True
    assert made(x).allclose(plain(x), atol=1e-5)
    assert made[0].bn.running_var.allclose(plain[1].running_var, atol=1e-6)
    made.eval(), plain.eval()
    assert made(x).allclose(plain(x), atol=1e-5)


def test_a_frozen_batch_norm_keeps_its_statistics():
    model = q.fuse_modules_qat(net().train(), ["0", "1"])
    model.qconfig = q.get_default_qat_qconfig()
    model = q.prepare_qat(model).apply(fused.freeze_bn_stats).train()
    before = model[0].bn.running_mean.clone()
    model(images(2))
    assert model[0].bn.running_mean.equal(before) and not model[0].bn.training
    model.apply(fused.update_bn_stats)(images(2))
    assert not model[0].bn.running_mean.equal(before)


def test_a_trained_model_becomes_one_of_integers_with_the_batch_norm_folded_in():
    model = nn.Sequential(q.QuantStub(), *net(), nn.Linear(75, 4), nn.BatchNorm1d(4), q.DeQuantStub())
    model = q.fuse_modules_qat(model.train(), [["1", "2", "3"], ["5", "6"]])
    model.qconfig = q.get_default_qat_qconfig()
    model = q.prepare_qat(model)
    x = images(2)
    for _ in range(3):
        model(x).sum().backward()
    assert model[1].weight.grad is not None and model[1].bn.weight.grad is not None
    model.eval()
    made = q.convert(model)
    assert type(made[1]) is intrinsic.quantized.ConvReLU2d and type(made[5]) is quantized.Linear
    assert (made(x) - model(x)).abs().max() < 0.15


def test_layers_with_a_relu_and_back_to_floats():
    layers = [nn.Linear(2, 3), nn.ReLU()]
    model = q.fuse_modules_qat(nn.Sequential(*layers).train(), ["0", "1"])
    model.qconfig = q.default_qat_qconfig
    made = q.prepare_qat(model)[0]
    assert type(made) is fused.LinearReLU and made(cresset.ones(1, 2)).min() >= 0
    back = made.to_float()
    assert type(back) is intrinsic.LinearReLU and type(back[0]) is nn.Linear and not list(back[0].children())
    assert back[0].weight.equal(layers[0].weight) and back(X).equal(layers[0](X).relu())


def test_what_cannot_be_fused_in_training_is_refused():
    conv = nn.Conv2d(1, 2, 3)
    with pytest.raises(AssertionError, match="same mode"):
        q.fuse_conv_bn(True, conv, nn.BatchNorm2d(2).eval())
    with pytest.raises(AssertionError, match="num_features"):
        q.fuse_conv_bn(True, conv, nn.BatchNorm2d(3))
    with pytest.raises(AssertionError, match="affine"):
        q.fuse_conv_bn(True, conv, nn.BatchNorm2d(2, affine=False))
    with pytest.raises(Exception, match="not yet supported in QAT"):
        q.fuse_convtranspose_bn(True, nn.ConvTranspose2d(1, 2, 3), nn.BatchNorm2d(2))
    with pytest.raises(AssertionError, match="Incorrect types"):
        intrinsic.ConvReLU2d(conv, nn.Tanh())
    with pytest.raises(AssertionError, match="qconfig must be provided"):
        fused.ConvBn2d(1, 2, 3)
    with pytest.raises(AssertionError, match="only works for ConvBn2d"):
        fused.ConvBn2d.from_float(conv)


def test_a_transposed_convolution_takes_a_batch_norm():
    layers = nn.Sequential(nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3)).eval()
    layers[1].running_mean.fill_(0.5)
    together = q.fuse_modules(layers, ["0", "1"])
    assert together(images(2)).allclose(layers(images(2)), atol=1e-5) and isinstance(together[1], nn.Identity)


class TestEmbeddings:
    def test_rows_are_imitated_each_with_a_scale_of_its_own(self):
        plain = nn.Embedding(3, 4)
        plain.qconfig = q.default_embedding_qat_qconfig
        made = qat.Embedding.from_float(plain)
        rows = cresset.tensor([0, 2])
        step = (plain.weight.amax(1) - plain.weight.amin(1))[rows, None] / 255
        assert ((made(rows) - plain(rows)).abs() <= step).all() and not made(rows).equal(plain(rows))
        made(rows).sum().backward()
        assert plain.weight.grad[0].tolist() == [1.0] * 4
        assert type(made.to_float()) is nn.Embedding and made.to_float().weight.equal(plain.weight)

    def test_bags_too(self):
        made = qat.EmbeddingBag(3, 4, mode="sum", qconfig=q.default_embedding_qat_qconfig)
        made.apply(q.disable_fake_quant)
        assert made(cresset.tensor([0, 1]), cresset.tensor([0])).allclose(made.weight[:2].sum(0)[None])

    def test_other_schemes_are_refused(self):
        with pytest.raises(AssertionError, match="Embedding Bag weights requires a qscheme"):
            qat.EmbeddingBag(3, 4, qconfig=q.default_qat_qconfig)
        assert qat.Embedding in q.get_embedding_qat_module_mappings().values()


def test_dynamic_layers_want_observers_that_forget():
    model = nn.Sequential(nn.Linear(2, 2)).train()
    model.qconfig = q.default_qat_qconfig
    with pytest.raises(ValueError, match="memoryless observer"):
        q.prepare_qat(model, {nn.Linear: qat.dynamic.Linear})
    model.qconfig = q.default_dynamic_qat_qconfig
    assert type(q.prepare_qat(model, {nn.Linear: qat.dynamic.Linear})[0]) is qat.dynamic.Linear


class TestGivenScales:
    def test_results_with_bounds_have_the_scale_of_the_bounds(self):
        model = nn.Sequential(nn.Sigmoid(), nn.Tanh()).train()
        model.qconfig = q.default_qat_qconfig
        watched = [layer.activation_post_process for layer in q.prepare_qat(model)]
        assert [(w.scale.item(), w.zero_point.item()) for w in watched] == [(1 / 256, 0), (2 / 256, 128)]
        assert all(type(w) is q.FixedQParamsFakeQuantize for w in watched)
        assert not hasattr(q.prepare(model.eval())[0], "activation_post_process")

    def test_only_an_observer_with_a_given_scale_will_do(self):
        with pytest.raises(AssertionError, match="must be a FixedQParamsObserver"):
            q.FixedQParamsFakeQuantize(q.MinMaxObserver)


class TestObservers:
    def test_the_base_is_abstract(self):
        with pytest.raises(TypeError, match="abstract"):
            q.ObserverBase(dtype=cresset.quint8)

    def test_one_that_reuses_its_input_has_no_scale(self):
        observer = q.ReuseInputObserver()
        assert observer(3) == 3
        with pytest.raises(Exception, match="should not be called"):
            observer.calculate_qparams()

    def test_what_observers_saw_can_be_given_to_another_model(self):
        def watched():
            return q.prepare(nn.Sequential(q.QuantStub(q.default_qconfig), nn.Identity()))

        one, other = watched(), watched()
        one(cresset.tensor([1.0, 5.0]))
        q.load_observer_state_dict(other, q.get_observer_state_dict(one))
        assert other[0].activation_post_process.max_val.item() == 5.0
        with pytest.raises(Exception, match="Missing keys"):
            q.load_observer_state_dict(other, {})

    def test_configurations_are_compared_by_what_they_make(self):
        assert q.qconfig_equals(q.get_default_qat_qconfig("x86"), q.get_default_qat_qconfig("fbgemm"))
        assert not q.qconfig_equals(q.default_qconfig, q.default_per_channel_qconfig)
        assert q.qconfig_equals(None, None) and not q.qconfig_equals(q.default_qconfig, None)


class TestImitation:
    def test_half_precision_is_rounded_once(self):
        x = cresset.tensor([0.95], dtype=cresset.float16)  # 0.9502: 9.502 tenths, and in half precision 9.5
        assert cresset.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255).item() == pytest.approx(1.0, abs=1e-3)

    def test_a_zero_point_between_integers_is_added_before_rounding(self):
        x = cresset.tensor([[0.4]])
        found = cresset.fake_quantize_per_channel_affine(x, cresset.ones(1), cresset.tensor([0.3]), 0, 0, 15)
        assert found.item() == pytest.approx(0.7)  # round(0.4 + 0.3) - 0.3

    def test_scales_and_zero_points_that_do_not_fit_are_refused(self):
        x, scale, zero = cresset.ones(2, 1), cresset.ones(2), cresset.tensor([0, 300])
        with pytest.raises(RuntimeError, match="between `quant_min` and `quant_max`"):
            cresset.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 255)
        with pytest.raises(RuntimeError, match="Scale must be Float"):
            cresset.fake_quantize_per_channel_affine(x, scale.double(), cresset.tensor([0, 3]), 0, 0, 255)

    def test_nothing_to_see_and_no_imitation(self):
        low, high = cresset.tensor([float("inf")]), cresset.tensor([float("-inf")])
        kept = low, high, cresset.ones(1), cresset.zeros(1, dtype=cresset.int32)
        on, off = cresset.tensor([1]), cresset.tensor([0])
        empty = cresset.fused_moving_avg_obs_fake_quant(cresset.empty(0, 5), on, off, *kept, 0.01, 0, 255, 0)
        assert empty.shape == (0, 5) and low.isinf()
        x = cresset.ones(2, requires_grad=True)
        cresset.fused_moving_avg_obs_fake_quant(x, on, off, *kept, 0.01, 0, 255, 0).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
