"""Comparing a model with the quantized one made of it: weights, results, and layers beside their shadows."""

import copy

import cresset
from cresset import nn
from cresset.ao import quantization as q
from cresset.ao.ns import _numeric_suite as suite


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head, self.sum = nn.Linear(4, 2), nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.body(self.quant(x))
        return self.dequant(self.head(self.sum.add(x, x)))


X = cresset.randn(8, 4, generator=cresset.Generator().manual_seed(3))


def both():
    model = q.fuse_modules(Net().eval(), [["body.0", "body.1"]])
    model.qconfig = q.default_qconfig
    ready = q.prepare(model)
    ready(X)
    return model, q.convert(ready)


def close(a, b, tolerance):
    return (a - (b.dequantize() if b.is_quantized else b)).abs().max() < tolerance


def test_weights_are_found_also_of_fused_layers():
    model, small = both()
    found = suite.compare_weights(model.state_dict(), small.state_dict())
    assert sorted(found) == ["body.0._packed_params._packed_params", "head._packed_params._packed_params"]
    assert all(close(pair["float"], pair["quantized"], 0.02) for pair in found.values())
    dynamic = q.quantize_dynamic(copy.deepcopy(model.head))
    assert type(dynamic) is nn.Linear  # the model itself has nobody to put another in its place


def test_results_of_layers_of_both_models():
    found = suite.compare_model_outputs(*both(), X)
    assert sorted(found) == ["head.stats", "quant.stats", "sum.stats"]
    assert all(len(pair["float"]) == len(pair["quantized"]) == 1 for pair in found.values())
    assert all(close(pair["float"][0], pair["quantized"][0], 0.3) for pair in found.values())


def test_shadows_get_the_input_of_the_quantized_layer():
    model, small = both()
    expected = small(X)
    found = suite.compare_model_stub(model, small, {nn.Linear, nn.quantized.FloatFunctional}, X)
    assert sorted(found) == ["head.stats", "sum.stats"]
    assert isinstance(small.head, suite.Shadow) and small(X).equal(expected)
    assert all(close(pair["float"][0], pair["quantized"][0], 0.1) for pair in found.values())


def test_a_recurrent_layer_has_a_shadow_that_gets_its_state():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 3)

        def forward(self, x, state):
            return self.lstm(x, state)

    model = Recurrent().eval()
    small, zeros = q.quantize_dynamic(model), cresset.zeros(1, 2, 3)
    found = suite.compare_model_stub(model, small, {nn.LSTM}, X.reshape(4, 2, 4), (zeros, zeros))
    [stats] = found.values()
    assert stats["float"][0].shape == (4, 2, 3) and close(stats["float"][0], stats["quantized"][0], 0.1)


def test_old_places_of_the_layers():
    assert nn.intrinsic.ConvReLU2d is cresset.ao.nn.intrinsic.ConvReLU2d and nn.qat.Linear is cresset.ao.nn.qat.Linear
