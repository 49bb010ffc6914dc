"""The state of every layer and of every optimizer goes into PyTorch's of the same arguments and comes back: as a
dictionary, and as a file.
"""

import copy
import inspect
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
    ("nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))", X3),
    ("nn.utils.parametrizations.spectral_norm(nn.Linear(6, 2))", X3),
    *[(f"nn.utils.parametrizations.orthogonal(nn.Linear({sizes}))", X3) for sizes in ("6, 2", "6, 6", "6, 9")],
    *[
        (f"nn.utils.parametrizations.orthogonal(nn.Linear(6, 2), orthogonal_map='{m}')", X3)
        for m in ("matrix_exp", "cayley")
    ],
    ("nn.utils.parametrizations.orthogonal(nn.Linear(6, 2), use_trivialization=False)", X3),
    ("nn.utils.spectral_norm(nn.Linear(6, 2))", X3),
    ("nn.DataParallel(nn.Linear(6, 2))", X3),
]
# Bases and what is no layer of its own.
NOT_LAYERS = {
    "Module",
    "Container",
    "ParameterDict",
    "ParameterList",
    "ModuleDict",
    "ModuleList",
    "RNNBase",
    "RNNCellBase",
}


def made(lib, spec, seed):
    lib.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(spec, {"nn": lib.nn, "torch": lib})


def values_of(lib, inputs):
    return ours(inputs) if lib is cresset else copy.deepcopy(inputs)


def called(lib, layer, inputs, seed=5):
    """The tensors that come out, from the same seed."""
    lib.manual_seed(seed)
    return tensors(layer(*values_of(lib, inputs)), lib.Tensor) if inputs else []


def converted(value, lib):
    """The same tensors in the other library, inside the same dictionaries and lists."""
    if isinstance(value, (cresset.Tensor, torch.Tensor)):
        array = value.detach()
        return lib.from_numpy(array.float().numpy().copy()).to(lib.bfloat16) if array.dtype in (
            cresset.bfloat16,
            torch.bfloat16,
        ) else lib.from_numpy(array.numpy().copy())  # fmt: skip
    if isinstance(value, dict):
        result = type(value)((key, converted(item, lib)) for key, item in value.items())
        if hasattr(value, "_metadata"):
            result._metadata = copy.deepcopy(value._metadata)
        return result
    return type(value)(converted(item, lib) for item in value) if isinstance(value, (list, tuple)) else value


def through_a_file(state, writer, reader):
    file = io.BytesIO()
    writer.save(state, file)
    file.seek(0)
    return reader.load(file, weights_only=True)


def carry(how, state, writer, reader):
    return through_a_file(state, writer, reader) if how == "file" else converted(state, reader)


def test_every_layer_is_in_the_table():
    made_here = " ".join(row[0] for row in LAYERS)
    kinds = {n: getattr(torch.nn, n) for n in torch.nn.modules.__all__ if n not in NOT_LAYERS}
    layers = [n for n, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, torch.nn.Module)]
    assert len(layers) > 150
    assert [name for name in layers if f"nn.{name}(" not in made_here and f"nn.{name}." not in made_here] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["dictionary", "file"])
@pytest.mark.parametrize("direction", ["to PyTorch", "from PyTorch"])
@pytest.mark.parametrize("layer", LAYERS + CONTAINERS, ids=lambda row: row[0].replace("nn.", ""))
def test_state_goes_into_the_other_librarys_layer(layer, direction, how):
    spec, *inputs = layer
    writer, reader = (cresset, torch) if direction == "to PyTorch" else (torch, cresset)
    source, target = made(writer, spec, 1), made(reader, spec, 2)
    # A step in training: running statistics leave their first values, lazy layers get shapes.
    called(writer, source, inputs)
    if "LazyInstanceNorm" in spec:  # whose number of features is not read from a state, in either library
        called(reader, target, inputs)
    state = source.state_dict()
    arrived = carry(how, state, writer, reader)
    assert arrived._metadata == state._metadata
    result = target.load_state_dict(arrived, strict=True)
    assert result.missing_keys == [] and result.unexpected_keys == []
    again = target.state_dict()
    assert list(again) == list(state) and again._metadata == state._metadata
    for key, value in state.items():
        pair = (again[key], value) if reader is cresset else (value, again[key])
        assert_same(*pair, key, rtol=0, atol=0)
    for mode in (True, False):
        source.train(mode), target.train(mode)
        outputs = called(writer, source, inputs), called(reader, target, inputs)
        for mine, theirs in zip(*(outputs if writer is cresset else outputs[::-1]), strict=True):
            assert_same(mine, theirs, "output")


OPTIMIZERS = {
    "Adadelta": {}, "Adafactor": {}, "Adagrad": {"lr_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {},
    "ASGD": {"t0": 2}, "LBFGS": {},
    "Muon": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {"centered": True, "momentum": 0.5}, "Rprop": {},
    "SGD": {"momentum": 0.9}, "SparseAdam": {},
}  # fmt: skip


def test_every_optimizer_is_in_the_table():
    theirs = {n for n in dir(torch.optim) if inspect.isclass(getattr(torch.optim, n)) and n != "Optimizer"}
    assert theirs == set(OPTIMIZERS)


def model_of(lib, name):
    """A model whose gradients the optimizer can take: sparse ones for SparseAdam, matrices only for Muon."""
    lib.manual_seed(0)
    embedding = lib.nn.Embedding(5, 3, sparse=name == "SparseAdam")
    linear = lib.nn.Linear(3, 2, bias=name != "Muon")
    model = lib.nn.Sequential(embedding, linear)
    return model, list(embedding.parameters()) if name == "SparseAdam" else list(model.parameters())


def trained(lib, model, optimizer, steps):
    def closure():
        optimizer.zero_grad()
        loss = (model(lib.tensor([[0, 3], [1, 3]])) - 1).square().mean()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


def assert_same_tree(mine, theirs, where=""):
    """Same keys in the same order, same types, same values; tensors with dtype and shape."""
    if isinstance(theirs, torch.Tensor):
        return assert_same(mine, theirs, where, rtol=1e-4, atol=1e-6)
    assert type(mine) is type(theirs) or isinstance(mine, cresset.Tensor), where
    if isinstance(theirs, dict):
        assert list(mine) == list(theirs), where
        for key in theirs:
            assert_same_tree(mine[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), where
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            assert_same_tree(a, b, f"{where}[{i}]")
    else:
        assert mine == (pytest.approx(theirs, rel=1e-5) if isinstance(theirs, float) else theirs), where


@pytest.mark.parametrize("how", ["dictionary", "file"])
@pytest.mark.parametrize("direction", ["to PyTorch", "from PyTorch"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_goes_into_the_other_librarys_optimizer(name, direction, how):
    writer, reader = (cresset, torch) if direction == "to PyTorch" else (torch, cresset)
    sides = []
    for lib in (writer, reader):
        model, parameters = model_of(lib, name)
        sides.append((lib, model, getattr(lib.optim, name)(parameters, **OPTIMIZERS[name])))
    (_, source, old), (_, target, new) = sides
    trained(*sides[0], 3)
    target.load_state_dict(carry(how, source.state_dict(), writer, reader))
    new.load_state_dict(carry(how, old.state_dict(), writer, reader))
    states = old.state_dict(), new.state_dict()
    assert_same_tree(*(states if writer is cresset else states[::-1]))
    for side in sides:
        trained(*side, 3)
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if name == "Muon" else {}  # it works in bfloat16
    for key, value in source.state_dict().items():
        pair = (value, target.state_dict()[key])
        assert_same(*(pair if writer is cresset else pair[::-1]), key, **tolerance)


@pytest.mark.parametrize("orthogonal_map", ["'householder'", "'cayley'", "'matrix_exp'", "None"])
@pytest.mark.parametrize("sizes", ["6, 2", "2, 6", "3, 3"])
@pytest.mark.parametrize("base", [True, False])
def test_orthogonal_weights_start_as_pytorchs(sizes, orthogonal_map, base):
    spec = (
        f"nn.utils.parametrizations.orthogonal(nn.Linear({sizes}), 'weight', {orthogonal_map}, "
        f"use_trivialization={base})"
    )
    mine, theirs = made(cresset, spec, 1), made(torch, spec, 1)
    assert_same(mine.weight, theirs.weight)
    for layer in (mine, theirs):
        (layer.weight * layer.weight.sin()).sum().backward()
    assert_same(mine.parametrizations.weight.original.grad, theirs.parametrizations.weight.original.grad)
