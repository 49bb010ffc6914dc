"""Every layer, compiled, gives what it gives in Python."""

import importlib.util
from pathlib import Path

import pytest

import cresset as torch

_spec = importlib.util.spec_from_file_location("jit_layers", Path(__file__).with_name("layers.py"))
_layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_layers)
LAYERS = _layers.LAYERS

pytestmark = pytest.mark.filterwarnings("ignore:Named tensors|enable_nested_tensor")


def tensors(value):
    return [one for part in value for one in tensors(part)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_layer_gives_what_it_gives_in_python(name):
    make, inputs = LAYERS[name]
    torch.manual_seed(0)
    layer = make(torch)
    scripted = torch.jit.script(layer)
    for method in scripted._script_type.methods.values():
        method.ensure_defined().graph.lint()
    want, got = tensors(layer(*inputs(torch))), tensors(scripted(*inputs(torch)))
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, atol=1e-5, equal_nan=True), (a, b)


@pytest.mark.parametrize(
    "name, shape",
    [("Dropout", (2, 3)), ("Dropout1d", (2, 3, 4)), ("Dropout2d", (2, 3, 4, 4)), ("Dropout3d", (2, 3, 2, 2, 2)),
        ("AlphaDropout", (2, 3)), ("FeatureAlphaDropout", (2, 3, 4)), ("RReLU", (2, 3))],
)  # fmt: skip
def test_a_random_layer_draws_the_same_numbers(name, shape):
    layer = getattr(torch.nn, name)()
    scripted = torch.jit.script(layer)
    results = []
    for run in (layer, scripted):
        torch.manual_seed(3)
        results.append(run(-torch.ones(shape)))
    assert torch.equal(*results)
