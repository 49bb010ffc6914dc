"""Every layer beside PyTorch's: how it prints, what it starts with from the same seed, what it computes, its
gradients."""

import copy
import inspect
import sys
from pathlib import Path

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "layers"))

from layer_rows import LAYERS, X2, X4, assert_same, make, numbers, ours, tensors  # noqa: E402


def assert_same_state(mine, theirs):
    assert repr(mine) == repr(theirs)
    assert [name for name, _ in mine.named_modules()] == [name for name, _ in theirs.named_modules()]
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b) and a._metadata == b._metadata
    for key in a:
        if not isinstance(b[key], torch.nn.parameter.UninitializedTensorMixin):
            assert_same(a[key], b[key], key, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer[0].replace("nn.", ""))
@pytest.mark.filterwarnings("ignore")
def test_layer_is_pytorchs(layer):
    spec, *inputs = layer
    mine, theirs = make(spec)
    assert_same_state(mine, theirs)
    for mode in (True, False):
        mine.train(mode), theirs.train(mode)
        cresset.manual_seed(5)
        got = tensors(mine(*ours(inputs)), cresset.Tensor)
        torch.manual_seed(5)
        expected = tensors(theirs(*copy.deepcopy(inputs)), torch.Tensor)
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b, "output")
        differentiable = [(a, b) for a, b in zip(got, expected, strict=True) if b.requires_grad]
        assert all(a.requires_grad for a, _ in differentiable)
        if differentiable:
            sum((a * a).sum() for a, _ in differentiable).backward()
            sum((b * b).sum() for _, b in differentiable).backward()
            for (name, p), q in zip(theirs.named_parameters(), mine.parameters(), strict=True):
                assert (p.grad is None) == (q.grad is None), name
                if p.grad is not None:
                    assert_same(q.grad, p.grad, name, rtol=1e-3, atol=1e-4)
        assert_same_state(mine, theirs)
    copy.deepcopy(mine)


@pytest.mark.parametrize(
    "spec",
    [
        "nn.ModuleList([nn.Linear(1, 2) for _ in range(3)] + [nn.ReLU()])",
        "nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Linear(2, 2)})",
        "nn.ParameterList([torch.ones(2), 3])",
        "nn.ParameterDict({'a': torch.ones(2), 'b': 2})",
    ],
)
def test_container_is_pytorchs(spec):
    assert_same_state(*make(spec))


def parameters_of(function):
    def default(p):
        return None if callable(p.default) else str(p.default) if hasattr(p.default, "itemsize") else p.default

    return [(p.name, default(p), p.kind) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", torch.nn.modules.__all__)
def test_constructor_has_pytorchs_signature(name):
    assert parameters_of(getattr(nn, name).__init__) == parameters_of(getattr(torch.nn, name).__init__)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in dir(torch.nn.functional)
        if inspect.isfunction(getattr(torch.nn.functional, n)) and hasattr(F, n) and n[0] != "_"
    ],
)
def test_function_has_pytorchs_signature(name):
    theirs = getattr(torch.nn.functional, name)
    expected = [p[:2] for p in parameters_of(theirs)]
    if [name for name, _ in expected] == ["args", "kwargs"]:
        pytest.skip("PyTorch's signature is hidden behind *args")
    assert [p[:2] for p in parameters_of(getattr(F, name))] == expected


@pytest.mark.parametrize(
    "fill",
    [
        "uniform_(w, -2, 3)", "normal_(w, 1, 2)", "trunc_normal_(w, 0, 0.5, -1, 1)", "xavier_uniform_(w, 2)",
        "xavier_normal_(w)",
        "kaiming_uniform_(w, 0.1)", "kaiming_normal_(w, mode='fan_out', nonlinearity='relu')", "constant_(w, 3)",
        "ones_(w)",
        "zeros_(w)", "eye_(w)", "sparse_(w, 0.5)", "orthogonal_(w)", "dirac_(w.view(4, 1, 5), 2)",
        "trunc_normal_(w, 0, 1, 1, 2)",
    ],
)  # fmt: skip
def test_same_seed_same_starting_values(fill):
    if fill.startswith("orthogonal") and not hasattr(cresset.linalg, "qr"):
        pytest.skip("needs linalg.qr")
    results = []
    for lib in (cresset, torch):
        lib.manual_seed(1)
        w = lib.empty(4, 5).zero_()
        eval(f"init.{fill}", {"init": lib.nn.init, "w": w})
        results.append(w)
    assert_same(*results)


def test_packed_sequences_run_like_pytorchs():
    lengths = [3, 5, 1]
    x = numbers(3, 5, 6)
    for spec in ("nn.LSTM(6, 4, num_layers=2, bidirectional=True)", "nn.GRU(6, 4)", "nn.RNN(6, 4, bidirectional=True)"):
        results = []
        mine, theirs = make(spec)
        for lib, layer, value in ((cresset, mine, ours(x)), (torch, theirs, x)):
            rnn = lib.nn.utils.rnn
            packed = rnn.pack_padded_sequence(value, lengths, batch_first=True, enforce_sorted=False)
            output, state = layer(packed)
            padded, counted = rnn.pad_packed_sequence(output, batch_first=True, padding_value=-1.0, total_length=6)
            assert counted.tolist() == lengths
            results.append([padded, *tensors(state, lib.Tensor), output.data])
        for a, b in zip(*results, strict=True):
            assert_same(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "apply",
    [
        "nn.utils.weight_norm(layer)", "nn.utils.weight_norm(layer, dim=None)", "nn.utils.weight_norm(layer, dim=1)",
        "nn.utils.spectral_norm(layer)", "nn.utils.parametrizations.weight_norm(layer)",
        "nn.utils.parametrizations.spectral_norm(layer)", "nn.utils.parametrizations.spectral_norm(layer, dim=1)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("layer", ["nn.Linear(4, 3)", "nn.Conv2d(4, 3, 2)"])
def test_weights_as_functions_are_pytorchs(apply, layer):
    x = X2 if "Linear" in layer else X4
    results = []
    for lib, value in ((cresset, ours(x)), (torch, x)):
        lib.manual_seed(0)
        made = eval(apply, {"nn": lib.nn, "layer": eval(layer, {"nn": lib.nn})})
        made(value)
        output = made(value)
        (output * output).sum().backward()
        results.append((made, output, [p.grad for p in made.parameters()]))
    (mine, a, mine_grads), (theirs, b, their_grads) = results
    assert_same(a, b)
    assert list(mine.state_dict()) == list(theirs.state_dict()) and repr(mine) == repr(theirs)
    for p, q in zip(mine_grads, their_grads, strict=True):
        assert_same(p, q, rtol=1e-3, atol=1e-4)


def test_fused_layers_are_pytorchs():
    for spec, norm, x in (
        ("nn.Conv2d(4, 6, 3)", "nn.BatchNorm2d(6)", X4),
        ("nn.Linear(4, 6)", "nn.BatchNorm1d(6)", X2),
    ):
        results = []
        for lib, value in ((cresset, ours(x)), (torch, x)):
            lib.manual_seed(0)
            layer, bn = eval(spec, {"nn": lib.nn}), eval(norm, {"nn": lib.nn})
            bn(layer(value))
            fuse = lib.nn.utils.fuse_conv_bn_eval if "Conv" in spec else lib.nn.utils.fuse_linear_bn_eval
            results.append(fuse(layer.eval(), bn.eval())(value))
        assert_same(*results)
