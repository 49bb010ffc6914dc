"""Scripted, traced, fx-traced, exported and ONNX forms of models and layers give eager's numbers.

A sample runs always; `CRESSET_ALL_FORMS=1` takes every model of `cresset.vision.models` and every layer, which takes
some minutes, as `.ci/run --long` does. ONNX files are run where ONNX Runtime is installed.
"""

import os
import sys
import warnings
from pathlib import Path

import pytest

import cresset
from cresset import fx, nn
from cresset.export import export
from cresset.pytree import tree_leaves
from cresset.vision import models

sys.path.insert(0, str(Path(__file__).parents[1] / "jit"))
from layers import LAYERS

ALL = os.environ.get("CRESSET_ALL_FORMS") == "1"
FORMS = ["script", "trace", "fx", "export", "onnx"]
SAMPLE = ["mobilenet_v3_small", "resnet18", "squeezenet1_1"]
# What a form does not hold, as in PyTorch, and what it says: a table that is written while it is read, numbers as
# inputs of a trace, operators that ONNX does not have.
REFUSED = {
    ("Embedding of a length", "trace"): "max_norm writes to the table",
    ("Embedding of a length", "export"): "max_norm writes to the table",
    ("Embedding of a length", "onnx"): "has no ONNX form here",
    ("ConvTranspose2d with a size", "trace"): "cannot be traced",
    ("FractionalMaxPool2d", "onnx"): "has no ONNX form here",
    ("FractionalMaxPool3d", "onnx"): "has no ONNX form here",
    ("CrossEntropyLoss with weights", "onnx"): "label smoothing",
    ("CTCLoss", "onnx"): "assignment to a slice with a step",
}


class Held(nn.Module):
    """A layer inside of a module, as fx sees it: a call."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer


class Held1(Held):
    def forward(self, a):
        return self.layer(a)


class Held2(Held):
    def forward(self, a, b):
        return self.layer(a, b)


class Held3(Held):
    def forward(self, a, b, c):
        return self.layer(a, b, c)


class Held4(Held):
    def forward(self, a, b, c, d):
        return self.layer(a, b, c, d)


HELD = {1: Held1, 2: Held2, 3: Held3, 4: Held4}


def vision_model(name):
    sizes = {"image_size": 56 if name.endswith("_14") else 64} if name.startswith("vit") else {}
    cresset.manual_seed(0)
    return models.get_model(name, **sizes).eval(), (cresset.randn(1, 3, *[sizes.get("image_size", 64)] * 2),)


def in_onnx(module, args, folder):
    """What ONNX Runtime makes of the exported file; weights that one file does not hold lie beside it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    path = str(folder / "model.onnx")
    cresset.onnx.export(module, args, path, opset_version=18)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = [leaf for leaf in tree_leaves(args) if isinstance(leaf, cresset.Tensor)]
    inputs = {i.name: t.numpy() for i, t in zip(session.get_inputs(), given, strict=True)}
    return lambda *args: [cresset.from_numpy(result) for result in session.run(None, inputs)]


def formed(form, module, args, folder):
    if form == "script":
        return cresset.jit.script(module)
    if form == "trace":
        return cresset.jit.trace(module, args, check_trace=False)
    if form == "fx":
        return fx.symbolic_trace(module)
    return export(module, args).module() if form == "export" else in_onnx(module, args, folder)


def check(form, module, args, folder):
    with warnings.catch_warnings(), cresset.no_grad():
        warnings.simplefilter("ignore")  # of paths that a recording freezes
        run = formed(form, module, args, folder)
        got, want = tree_leaves(run(*args)), tree_leaves(module(*args))
    want = [leaf for leaf in want if form != "onnx" or isinstance(leaf, cresset.Tensor)]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        if isinstance(b, cresset.Tensor):
            scale = max(float(b.double().abs().max()), 1.0) if b.numel() else 1.0
            assert a.shape == b.shape
            assert cresset.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5 * scale, equal_nan=True)
        else:
            assert a == b


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", models.list_models() if ALL else SAMPLE)
def test_a_model_gives_eagers_numbers(name, form, tmp_path):
    check(form, *vision_model(name), tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(LAYERS)[:: 1 if ALL else 12])
def test_a_layer_gives_eagers_numbers(name, form, tmp_path):
    make, arguments = LAYERS[name]
    cresset.manual_seed(0)
    module, args = make(cresset).eval(), arguments(cresset)
    if (name, form) in REFUSED:
        with pytest.raises(RuntimeError, match=REFUSED[name, form]):
            check(form, module, args, tmp_path)
        return
    check(form, HELD[len(args)](module) if form == "fx" else module, args, tmp_path)


def test_a_small_transformer_gives_eagers_numbers_in_every_form_that_records(tmp_path):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    for form in ("script", "trace", "export"):
        check(form, model, (cresset.randn(2, 3, 4),), tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_a_small_vision_transformer_gives_eagers_numbers(form, tmp_path):
    model = models.VisionTransformer(32, 16, 2, 2, 16, 32, num_classes=5).eval()
    check(form, model, (cresset.randn(2, 3, 32, 32),), tmp_path)
