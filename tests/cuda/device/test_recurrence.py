"""Recurrent layers and cells on CUDA give what the CPU gives, and so do their gradients, without a detour over the
CPU."""

import copy
import math

import pytest

import cresset
from cresset import nn
from cresset.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-2, "bfloat16": 1e-1}


@pytest.fixture(autouse=True)
def exact():
    """Without TF32."""
    cresset.backends.cudnn.allow_tf32 = False
    yield
    cresset.backends.cudnn.allow_tf32 = True


def noise(*shape, seed=1):
    return cresset.randn(*shape, generator=cresset.Generator().manual_seed(seed))


def run(network, device, x, state, lengths=None):
    """The results, then the gradients of the input, of the starting state and of the parameters."""
    network = copy.deepcopy(network).to(device)
    x, *state = (t.detach().to(device).requires_grad_() for t in (x, *state))
    given = (
        x
        if lengths is None
        else pack_padded_sequence(x, lengths, batch_first=network.batch_first, enforce_sorted=False)
    )
    output, final = network(given, tuple(state) if len(state) == 2 else state[0])
    if lengths is not None:
        output, _ = pad_packed_sequence(output, batch_first=network.batch_first)
    results = [output, *(final if isinstance(final, tuple) else (final,))]
    loss = sum(
        (t.float() * (k + 1 + (cresset.arange(t.numel(), device=device) % 5).view(t.shape))).sum()
        for k, t in enumerate(results)
    )
    loss.backward()
    return [*(t.detach() for t in results), x.grad, *(s.grad for s in state), *(p.grad for p in network.parameters())]


def agree(network, x, state, lengths=None, dtype="float32"):
    kind = getattr(cresset, dtype)
    network, x, state = network.to(kind), x.to(kind), [s.to(kind) for s in state]
    expected, got = run(network, "cpu", x, state, lengths), run(network, "cuda", x, state, lengths)
    tolerance = TOLERANCE[dtype]
    for e, g in zip(expected, got, strict=True):
        assert g.is_cuda and g.dtype == e.dtype and g.shape == e.shape
        scale = max(1.0, e.float().abs().max().item())
        cresset.testing.assert_close(g.cpu() / scale, e / scale, rtol=tolerance, atol=tolerance)


def state_of(network, batch):
    count = network.num_layers * (2 if network.bidirectional else 1)
    shapes = [(count, batch, network.proj_size or network.hidden_size)]
    if isinstance(network, nn.LSTM):
        shapes.append((count, batch, network.hidden_size))
    return [noise(*shape, seed=3 + k) for k, shape in enumerate(shapes)]


@pytest.fixture(autouse=True)
def _nothing_travels():
    """No operator of these tests is computed on the CPU."""
    before = set(cresset._native.cuda.operators_on_host())
    yield
    assert set(cresset._native.cuda.operators_on_host()) <= before


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
class TestNetworks:
    @pytest.mark.parametrize("dtype", TOLERANCE)
    def test_one_layer(self, kind, dtype):
        network = kind(5, 7)
        agree(network, noise(6, 3, 5), state_of(network, 3), dtype=dtype)

    def test_layers_in_both_directions(self, kind):
        network = kind(4, 6, num_layers=2, bidirectional=True, batch_first=True)
        agree(network, noise(2, 5, 4), state_of(network, 2))

    def test_without_biases(self, kind):
        network = kind(3, 40, bias=False)
        agree(network, noise(3, 2, 3), state_of(network, 2), dtype="float64")

    def test_packed_sequences(self, kind):
        network = kind(3, 5, bidirectional=True)
        agree(network, noise(6, 4, 3), state_of(network, 4), lengths=[2, 6, 1, 3])

    def test_without_gradients(self, kind):
        network, x = kind(3, 5), noise(4, 2, 3)
        with cresset.no_grad():
            expected, got = network(x)[0], copy.deepcopy(network).cuda()(x.cuda())[0]
        cresset.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)

    def test_one_sequence_without_a_batch(self, kind):
        network, x = kind(3, 5), noise(4, 3)
        cresset.testing.assert_close(
            copy.deepcopy(network).cuda()(x.cuda())[0].cpu(), network(x)[0], rtol=1e-5, atol=1e-5
        )

    def test_dropout_between_layers_leaves_or_doubles(self, kind):
        network = kind(3, 8, num_layers=2, dropout=0.5).cuda()
        x = noise(4, 2, 3).cuda()
        assert not cresset.equal(network(x)[0], network(x)[0])
        network.eval()
        assert cresset.equal(network(x)[0], network(x)[0])

    def test_second_derivative(self, kind):
        network = kind(2, 3).double()

        def penalty(device):
            layer, x = copy.deepcopy(network).to(device), noise(3, 2, 2).double().to(device).requires_grad_()
            (grad,) = cresset.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
            grad.square().sum().backward()
            return [p.grad.cpu() for p in layer.parameters()]

        for e, g in zip(penalty("cpu"), penalty("cuda"), strict=True):
            cresset.testing.assert_close(g, e, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("lengths", [None, [3, 1, 4]])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_lstm_with_a_projection(dtype, lengths):
    network = nn.LSTM(4, 6, num_layers=2, proj_size=3, bidirectional=True)
    agree(network, noise(4, 3, 4), state_of(network, 3), lengths=lengths, dtype=dtype)


def test_rnn_with_relu():
    network = nn.RNN(4, 6, nonlinearity="relu")
    agree(network, noise(4, 3, 4), state_of(network, 3))


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind):
    cell, x = kind(4, 6), noise(3, 4)

    def results(device):
        own = copy.deepcopy(cell).to(device)
        state = own(x.to(device), own(x.to(device)))
        state = state if isinstance(state, tuple) else (state,)
        sum(s.square().sum() for s in state).backward()
        return [*state, *(p.grad for p in own.parameters())]

    for e, g in zip(results("cpu"), results("cuda"), strict=True):
        assert g.is_cuda
        cresset.testing.assert_close(g.cpu(), e, rtol=1e-5, atol=1e-5)


def test_autocast_computes_in_half_precision():
    network = nn.LSTM(4, 6).cuda()
    with cresset.autocast("cuda", dtype=cresset.float16):
        output, _ = network(noise(3, 2, 4).cuda())
    assert output.dtype == cresset.float16
    output.float().sum().backward()
    assert all(p.grad.dtype == cresset.float32 and math.isfinite(p.grad.sum().item()) for p in network.parameters())
