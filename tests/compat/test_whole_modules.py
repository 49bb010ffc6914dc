"""Every layer saved whole: the file names PyTorch's class, PyTorch loads it and computes the same, and the other way
round.
"""

import copy
import io
import sys
import warnings
from pathlib import Path

import pytest

import cresset

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "layers"))

from layer_rows import LAYERS, X3, assert_same, ours, tensors  # noqa: E402

CONTAINERS = [
    ("nn.ModuleList([nn.Linear(1, 2), nn.BatchNorm1d(2), nn.ReLU()])",),
    ("nn.ModuleDict({'b': nn.Linear(2, 2), 'a': nn.PReLU()})",),
    ("nn.ParameterList([torch.ones(2), torch.zeros(3, 1)])",),
    ("nn.ParameterDict({'b': torch.ones(2), 'a': torch.zeros(1)})",),
    ("nn.DataParallel(nn.Linear(6, 2))", X3),
    ("nn.Sequential(nn.LayerNorm(6), nn.TransformerEncoderLayer(6, 2, 8, batch_first=True))", X3),
    *[
        (f"nn.TransformerEncoderLayer(6, 2, 8, activation={kind})", X3)
        for kind in ("nn.functional.silu", "nn.functional.gelu", "nn.GELU()", "nn.Tanh()")
    ],
]


def made(lib, spec, seed=1):
    lib.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(spec, {"nn": lib.nn, "torch": lib})


def called(lib, layer, inputs, seed=5):
    """The tensors that come out, from the same seed."""
    lib.manual_seed(seed)
    values = ours(inputs) if lib is cresset else copy.deepcopy(inputs)
    return tensors(layer(*values), lib.Tensor) if inputs else []


def carried(value, writer, reader, **settings):
    file = io.BytesIO()
    writer.save(value, file, **settings)
    file.seek(0)
    return reader.load(file, weights_only=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["to PyTorch", "from PyTorch", "here"])
@pytest.mark.parametrize("layer", LAYERS + CONTAINERS, ids=lambda row: row[0].replace("nn.", ""))
def test_a_layer_saved_whole_computes_the_same_where_it_is_loaded(layer, way):
    spec, *inputs = layer
    writer, reader = {"to PyTorch": (cresset, torch), "from PyTorch": (torch, cresset), "here": (cresset, cresset)}[way]
    source = made(writer, spec)
    called(writer, source, inputs)  # running statistics leave their first values, lazy layers get shapes
    expected_class = type(made(reader, spec))
    for settings in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
        target = carried(source, writer, reader, **settings)
        if "Lazy" not in spec:
            assert type(target) is expected_class
        assert [type(m).__qualname__ for m in target.modules()] == [type(m).__qualname__ for m in source.modules()]
        a, b = source.state_dict(), target.state_dict()
        assert list(a) == list(b)
    assert target.training == source.training and repr(target) == repr(source)
    for mode in (True, False):
        source.train(mode), target.train(mode)
        outputs = called(writer, source, inputs), called(reader, target, inputs)
        for first, second in zip(*outputs, strict=True):
            if way == "here":
                cresset.testing.assert_close(first, second, rtol=0, atol=0, equal_nan=True)
            else:
                assert_same(*((first, second) if writer is cresset else (second, first)), spec)
    copy.deepcopy(target)


@pytest.mark.filterwarnings("ignore")
def test_every_class_of_layers_has_pytorchs_name():
    from cresset.serialization.saving import torch_name

    wrong = {}
    for name in torch.nn.modules.__all__:
        theirs, mine = getattr(torch.nn, name), getattr(cresset.nn, name)
        if issubclass(theirs, torch.nn.Module) and torch_name(mine.__module__, mine.__qualname__) != (
            theirs.__module__,
            theirs.__qualname__,
        ):
            wrong[name] = torch_name(mine.__module__, mine.__qualname__)
    assert wrong == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer", LAYERS + CONTAINERS, ids=lambda row: row[0].replace("nn.", ""))
def test_a_layer_has_the_attributes_that_pytorchs_has(layer):
    """PyTorch's code reads them from the instance's dictionary when it loads a file of ours."""
    spec, *inputs = layer
    mine, theirs = made(cresset, spec), made(torch, spec)
    called(cresset, mine, inputs), called(torch, theirs, inputs)
    assert set(theirs.__getstate__()) - set(mine.__getstate__()) == set()


def test_an_operator_as_activation_goes_into_pytorch_and_comes_back():
    layer = cresset.nn.TransformerEncoderLayer(6, 2, 8, activation=cresset.tanh).eval()
    assert carried(layer, cresset, torch).activation is torch.tanh
    assert carried(layer, cresset, cresset).activation is cresset.tanh


def test_a_trained_recurrent_layer_saved_whole_has_its_latest_weights():
    layer = cresset.nn.LSTM(6, 3)
    layer.weight_ih_l0 = cresset.nn.Parameter(cresset.ones(12, 6))
    target = carried(layer, cresset, torch)
    assert target._flat_weights[0] is target.weight_ih_l0 and bool((target.weight_ih_l0 == 1).all())
    back = carried(target, torch, cresset)
    assert "_flat_weights" not in vars(back) and back._flat_weights[0] is back.weight_ih_l0
