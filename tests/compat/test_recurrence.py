"""Recurrent networks beside PyTorch: values and all gradients over the argument space."""

import itertools

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

KINDS = ("LSTM", "GRU", "RNN")


def pair(kind, *args, dtype="float32", **options):
    """The same module in both libraries, with the same weights."""
    theirs = getattr(torch.nn, kind)(*args, **options, dtype=getattr(torch, dtype))
    ours = getattr(cresset.nn, kind)(*args, **options, dtype=getattr(cresset, dtype))
    with cresset.no_grad():
        for name, weight in theirs.named_parameters():
            getattr(ours, name).copy_(cresset.tensor(weight.detach().numpy()))
    return ours, theirs


def flat(result):
    """The tensors in nested tuples (packed sequences, states)."""
    if isinstance(result, (cresset.Tensor, torch.Tensor)):
        return [result]
    if hasattr(result, "batch_sizes"):
        return [result.data]
    return [t for part in result for t in flat(part)]


def near(a, b, dtype):
    tolerance = 1e-10 if dtype == "float64" else 2e-5
    a, b = np.asarray(a.detach().tolist()), b.detach().numpy()
    np.testing.assert_allclose(a.reshape(b.shape), b, rtol=tolerance, atol=tolerance)


def compare(ours, theirs, run, arrays, dtype):
    """run(library, module, *tensors) on both: results, and the gradients of the tensors and the parameters."""
    mine = [cresset.tensor(a, dtype=getattr(cresset, dtype), requires_grad=True) for a in arrays]
    other = [torch.tensor(a, dtype=getattr(torch, dtype), requires_grad=True) for a in arrays]
    results, expected = flat(run(cresset, ours, *mine)), flat(run(torch, theirs, *other))
    rng = np.random.default_rng(0)
    loss = their_loss = 0
    for a, b in zip(results, expected, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        near(a, b, dtype)
        weight = rng.standard_normal(tuple(b.shape))
        loss = loss + (a * cresset.tensor(weight, dtype=a.dtype)).sum()
        their_loss = their_loss + (b * torch.tensor(weight, dtype=b.dtype)).sum()
    loss.backward()
    their_loss.backward()
    for a, b in zip(mine, other, strict=True):
        near(a.grad, b.grad, dtype)
    for name, weight in theirs.named_parameters():
        near(getattr(ours, name).grad, weight.grad, dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "layers, both_ways, batch_first, bias", list(itertools.product((1, 2), (False, True), (False, True), (True, False)))
)
def test_networks(kind, layers, both_ways, batch_first, bias):
    for dtype in ("float32", "float64"):
        options = {"num_layers": layers, "bidirectional": both_ways, "batch_first": batch_first, "bias": bias}
        ours, theirs = pair(kind, 5, 7, dtype=dtype, **options)
        rng = np.random.default_rng(2)
        x = rng.standard_normal((3, 9, 5) if batch_first else (9, 3, 5))
        compare(ours, theirs, lambda library, module, x: module(x), [x], dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_given_states_get_gradients(kind):
    ours, theirs = pair(kind, 4, 6, num_layers=2, bidirectional=True, dtype="float64")
    rng = np.random.default_rng(3)
    x, h, c = rng.standard_normal((5, 2, 4)), rng.standard_normal((4, 2, 6)), rng.standard_normal((4, 2, 6))
    if kind == "LSTM":
        compare(ours, theirs, lambda library, module, x, h, c: module(x, (h, c)), [x, h, c], "float64")
    else:
        compare(ours, theirs, lambda library, module, x, h: module(x, h), [x, h], "float64")


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # PyTorch says that it is slow
@pytest.mark.parametrize("layers, both_ways", list(itertools.product((1, 2), (False, True))))
def test_projections(layers, both_ways):
    for dtype in ("float32", "float64"):
        ours, theirs = pair("LSTM", 5, 8, num_layers=layers, bidirectional=both_ways, proj_size=3, dtype=dtype)
        x = np.random.default_rng(4).standard_normal((6, 10, 5))
        compare(ours, theirs, lambda library, module, x: module(x), [x], dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("lengths", [(5, 5, 5), (7, 3, 1), (2, 6, 4, 6)])
def test_packed_sequences(kind, both_ways, lengths):
    ours, theirs = pair(kind, 3, 4, num_layers=2, bidirectional=both_ways, dtype="float64")
    x = np.random.default_rng(5).standard_normal((max(lengths), len(lengths), 3))
    h = np.random.default_rng(6).standard_normal((4 if both_ways else 2, len(lengths), 4))

    def run(library, module, x, h):
        packed = library.nn.utils.rnn.pack_padded_sequence(x, list(lengths), enforce_sorted=False)
        return module(packed, (h, h * 2) if kind == "LSTM" else h)

    compare(ours, theirs, run, [x, h], "float64")


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_beyond_a_tile(kind):
    ours, theirs = pair(kind, 33, 67, batch_first=True)
    x = np.random.default_rng(7).standard_normal((19, 12, 33))
    compare(ours, theirs, lambda library, module, x: module(x), [x], "float32")


def test_relu_networks():
    ours, theirs = pair("RNN", 4, 6, nonlinearity="relu", dtype="float64")
    x = np.random.default_rng(8).standard_normal((5, 2, 4))
    compare(ours, theirs, lambda library, module, x: module(x), [x], "float64")


def test_unbatched_input_and_half_precision():
    for kind in KINDS:
        ours, theirs = pair(kind, 4, 6, dtype="float64")
        x = np.random.default_rng(9).standard_normal((5, 4))
        compare(ours, theirs, lambda library, module, x: module(x), [x], "float64")
        half = ours.to(cresset.bfloat16)(cresset.tensor(x, dtype=cresset.bfloat16))[0]
        expected = theirs.to(torch.bfloat16)(torch.tensor(x, dtype=torch.bfloat16))[0]
        assert half.dtype is cresset.bfloat16
        np.testing.assert_allclose(half.float().tolist(), expected.float().tolist(), atol=0.03)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(kind):
    ours, theirs = pair(kind, 4, 6, dtype="float64")
    rng = np.random.default_rng(10)
    x, h, c = rng.standard_normal((3, 4)), rng.standard_normal((3, 6)), rng.standard_normal((3, 6))
    if kind == "LSTMCell":
        compare(ours, theirs, lambda library, module, x, h, c: module(x, (h, c)), [x, h, c], "float64")
    else:
        compare(ours, theirs, lambda library, module, x, h: module(x, h), [x, h], "float64")


@pytest.mark.parametrize("name, gates", [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
@pytest.mark.parametrize(
    "biases, both_ways, batch_first", list(itertools.product((False, True), (False, True), (False, True)))
)
def test_functions_with_pytorchs_arguments(name, gates, biases, both_ways, batch_first):
    rng = np.random.default_rng(11)
    directions, hidden, features = 2 if both_ways else 1, 4, 3
    params = []
    for layer, _ in itertools.product(range(2), range(directions)):
        width = features if layer == 0 else hidden * directions
        shapes = [(gates * hidden, width), (gates * hidden, hidden)] + [(gates * hidden,)] * (2 * biases)
        params += [rng.standard_normal(s) * 0.3 for s in shapes]
    x = rng.standard_normal((2, 5, features) if batch_first else (5, 2, features))
    h = rng.standard_normal((2 * directions, 2, hidden))

    def run(library):
        state = library.tensor(h)
        hx = (state, state * 0.5) if name == "lstm" else state
        return getattr(library, name)(
            library.tensor(x), hx, [library.tensor(p) for p in params], biases, 2, 0.0, False, both_ways, batch_first
        )

    def run_packed(library):
        state = library.tensor(h)
        hx = (state, state * 0.5) if name == "lstm" else state
        data, sizes = library.tensor(x.reshape(10, features)[:7]), library.tensor([2, 2, 1, 1, 1])
        return getattr(library, name)(
            data, sizes, hx, [library.tensor(p) for p in params], biases, 2, 0.0, False, both_ways
        )

    for call in (run, run_packed):
        for a, b in zip(call(cresset), call(torch), strict=True):
            near(a, b, "float64")


def test_dropout_between_layers_draws_pytorchs_numbers():
    for kind in KINDS:
        ours, theirs = pair(kind, 4, 6, num_layers=3, dropout=0.4, dtype="float64")
        x = np.random.default_rng(12).standard_normal((5, 2, 4))

        def run(library, module, x):
            library.manual_seed(1)
            return module(x)

        compare(ours, theirs, run, [x], "float64")
