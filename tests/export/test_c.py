"""Exported programs as C99: compiled with warnings as errors, they give the same numbers."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

import cresset
from cresset import nn
from cresset.export import Dim, export, to_c
from cresset.nn import functional as F

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def compiled(program, folder, **options):
    """The file as a running program: a function of lists of input tensors that gives the output bytes."""
    path = folder / "model.c"
    to_c(program, path, main=True, **options)
    subprocess.run(["cc", *STRICT, "-o", folder / "model", path, "-lm"], check=True, capture_output=True, text=True)
    command = [folder / "model"] + ([folder / "model.bin"] if options.get("weights") == "beside" else [])

    def run(*samples):
        given = b"".join(bytes(memoryview(t.detach().contiguous().reshape(-1))) for sample in samples for t in sample)
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout

    return run


def floats(data):
    return cresset.frombuffer(bytearray(data), dtype=cresset.float32)


def same(module, inputs, folder, **options):
    """Whether C gives the module's outputs."""
    module.eval()
    program = export(module, inputs)
    found = floats(compiled(program, folder, **options)(inputs))
    with cresset.no_grad():
        expected = cresset.cat([t.float().reshape(-1) for t in cresset.pytree.tree_leaves(module(*inputs))])
    return cresset.allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def seed():
    cresset.manual_seed(0)


LAYERS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1)), (cresset.randn(5, 4),)),
    "cnn": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 3, groups=4, dilation=2, padding=2), nn.MaxPool2d(3, 2, 1),
                      nn.AvgPool2d(2, ceil_mode=True), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(),
                      nn.Linear(32, 5), nn.LogSoftmax(-1)),
        (cresset.randn(2, 3, 17, 19),),
    ),
    "conv1d": lambda: (nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU(), nn.MaxPool1d(2)),
        (cresset.randn(2, 2, 9),)),
    "encoder": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (cresset.randn(2, 5, 8),)),
    "attention weights": lambda: (nn.MultiheadAttention(8, 2, batch_first=True), (cresset.randn(2, 5, 8),) * 3),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_same_numbers(name, tmp_path):
    module, inputs = LAYERS[name]()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    assert same(module, inputs, tmp_path)


class Pointwise(nn.Module):
    def forward(self, x, y):
        return (
            x + y, x - 2 * y, 1 - x, 2 / (x.abs() + 1), x**2, x / 3, cresset.maximum(x, y),
            cresset.where(x > 0, x, 0.0), x.clamp(-0.5, 0.5), F.elu(x), F.leaky_relu(x), F.softplus(x),
            F.hardswish(x), F.gelu(x, approximate="tanh"), x.masked_fill(y > 0, -1.0), x.sigmoid() * x.tanh(),
            (x > 0).float(), ((x > 0) & (y > 0)).float(), F.mish(x), F.hardtanh(x),
            x.exp().log1p(), F.logsigmoid(x), F.selu(x), F.softsign(x), x.square().sqrt(), cresset.add(x, y, alpha=3),
            (x < y).float(),
        )  # fmt: skip


class Movement(nn.Module):
    def forward(self, x, y):
        a, b = x.chunk(2, 1)
        return (
            x.transpose(0, 1) * 1, x[:, 1:3], x[0], x[..., None].expand(3, 4, 2), cresset.cat([x, x + 1], 1),
            cresset.stack([x, y], 2), a * b, x.reshape(2, 6).t() + 0, F.pad(x, (1, 2), value=3.0),
            x.sum(1), x.mean((0, 1)), x.amax(0, keepdim=True), x.unbind(1)[2] * 2,
            x.permute(1, 0).contiguous().view(-1), x @ y.T, x.argmax(1).float(), x.flatten(), x.prod(1), y.amin(),
            x.softmax(0), x.index_select(1, cresset.tensor([2, 0])),
        )  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("module", [Pointwise(), Movement()], ids=lambda m: type(m).__name__)
def test_operators_give_the_same_numbers(module, tmp_path):
    assert same(module, (cresset.randn(3, 4), cresset.randn(3, 4)), tmp_path)


@needs_compiler
def test_weights_may_lie_beside(tmp_path):
    module = nn.Linear(3, 2)
    assert same(module, (cresset.randn(4, 3),), tmp_path, weights="beside", name="net")
    assert (tmp_path / "model.bin").stat().st_size == 4 * 8
    assert "net_load" in (tmp_path / "model.c").read_text()


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
def test_the_digits_cnn_has_the_same_argmax_on_a_thousand_inputs(tmp_path):
    from cresset.cli.digits import load_digits

    model = example("image_classifier").make_model(8)
    pictures, labels = (t[:1000] for t in load_digits())
    optimizer = cresset.optim.Adam(model.parameters(), lr=0.01)
    for start in range(0, 1000, 100):
        loss = F.cross_entropy(model(pictures[start : start + 100]), labels[start : start + 100])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    run = compiled(export(model, (pictures[:1],)), tmp_path)
    found = floats(run(*((picture[None],) for picture in pictures))).view(1000, 10)
    with cresset.no_grad():
        expected = model(pictures)
    assert cresset.equal(found.argmax(1), expected.argmax(1)) and expected.argmax(1).unique().numel() > 5
    assert cresset.allclose(found, expected, atol=1e-4)


@needs_compiler
def test_the_small_gpt_has_the_same_argmax_on_a_thousand_inputs(tmp_path):
    gpt = example("char_gpt")
    model = gpt.GPT(letters=50, context=16, width=32, layers=2, heads=4).eval()
    ids = cresset.randint(0, 50, (1000, 16))
    run = compiled(export(model, (ids[:1],)), tmp_path)
    found = floats(run(*((sample[None],) for sample in ids))).view(1000, 16, 50)
    with cresset.no_grad():
        expected = model(ids)
    assert cresset.equal(found.argmax(-1), expected.argmax(-1))
    assert cresset.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    "make, problem",
    [
        (
            lambda: export(nn.Linear(2, 1), (cresset.ones(3, 2),), dynamic_shapes={"input": {0: Dim("batch")}}),
            r"to_c: the sizes \['batch'\] are free",
        ),
        (lambda: export(nn.Dropout(), (cresset.ones(2),)), "to_c: aten::dropout: dropout in training mode"),
        (
            lambda: export(nn.BatchNorm1d(2), (cresset.ones(3, 2),)),
            "to_c: aten::add_: a write to an input or to a buffer",
        ),
        (lambda: export(nn.LSTM(2, 2), (cresset.ones(3, 1, 2),)), "to_c: aten::lstm: it has no form in C here"),
        (lambda: export(nn.Linear(2, 1).half(), (cresset.ones(3, 2).half(),)), "float16"),
    ],
)
def test_what_has_no_form_in_c_is_named(make, problem, tmp_path):
    with pytest.raises(NotImplementedError, match=problem):
        to_c(make(), tmp_path / "model.c")
    assert not (tmp_path / "model.c").exists()


def test_wrong_arguments_are_named(tmp_path):
    program = export(nn.ReLU(), (cresset.ones(2),))
    with pytest.raises(ValueError, match="should end in .c"):
        to_c(program, tmp_path / "model.h")
    with pytest.raises(ValueError, match="weights should be"):
        to_c(program, tmp_path / "model.c", weights="elsewhere")
    with pytest.raises(ValueError, match="'a b' is no name in C"):
        to_c(program, tmp_path / "model.c", name="a b")
