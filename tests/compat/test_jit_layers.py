"""Layers that are scripted and saved here run in PyTorch, and those of PyTorch run here, with the same numbers."""

import importlib.util
import io
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import cresset  # noqa: E402

_spec = importlib.util.spec_from_file_location("jit_layers", Path(__file__).parents[1] / "jit" / "layers.py")
_layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_layers)
LAYERS = _layers.LAYERS

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),
    pytest.mark.filterwarnings("ignore:'norm' was found in ScriptModule constants"),
]


def numbers(value):
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in numbers(part)]
    return [None if value is None else value.double().tolist()]


def agree(first, second):
    first, second = numbers(first), numbers(second)
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert (a is None and b is None) or torch.allclose(
            torch.tensor(a), torch.tensor(b), atol=1e-5, equal_nan=True
        ), (a, b)


def saved(library, name):
    make, inputs = LAYERS[name]
    library.manual_seed(0)
    layer = make(library)
    scripted = library.jit.script(layer)
    file = io.BytesIO()
    library.jit.save(scripted, file)
    file.seek(0)
    return file, scripted(*inputs(library))


@pytest.mark.parametrize("name", LAYERS)
def test_pytorch_runs_what_is_scripted_here(name):
    file, want = saved(cresset, name)
    agree(torch.jit.load(file)(*LAYERS[name][1](torch)), want)


# PyTorch refuses to script these, or to call them once they are loaded.
NOT_IN_PYTORCH = {
    "AdaptiveAvgPool2d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "RNN", "RNN relu", "LSTM", "LSTM without a batch",
    "LSTM with a state", "GRU", "GaussianNLLLoss", "TripletMarginWithDistanceLoss",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in NOT_IN_PYTORCH])
def test_what_pytorch_scripts_runs_here(name):
    file, want = saved(torch, name)
    agree(cresset.jit.load(file)(*LAYERS[name][1](cresset)), want)
