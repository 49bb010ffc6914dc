"""Recurrent layers: steps that can be worked out by hand, gradients to the second order, packed sequences, and
threads."""

import os
import subprocess
import sys

import pytest

import cresset
from cresset import nn
from cresset.autograd import gradcheck, gradgradcheck


def drawn(*shape):
    return cresset.randn(*shape, dtype=cresset.float64, requires_grad=True)


def test_a_plain_relu_cell_adds_up_its_inputs():
    one = [cresset.ones(1, 1)] * 2
    x = cresset.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    output, last = cresset.rnn_relu(x, cresset.zeros(1, 1, 1), one, False, 1, 0.0, False, False, False)
    assert output.flatten().tolist() == [1.0, 3.0, 6.0]
    assert last.item() == 6.0


def test_in_reverse_it_adds_up_from_the_end():
    one = [cresset.ones(1, 1)] * 4
    x = cresset.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    output, last = cresset.rnn_relu(x, cresset.zeros(2, 1, 1), one, False, 1, 0.0, False, True, False)
    assert output.squeeze(1).tolist() == [[1.0, 6.0], [3.0, 5.0], [6.0, 3.0]]
    assert last.flatten().tolist() == [6.0, 6.0]


def test_an_lstm_with_zero_weights_halves_its_cell():
    zero = [cresset.zeros(4, 1)] * 2
    h = cresset.full((1, 1, 1), 8.0)
    assert cresset.lstm(cresset.ones(3, 1, 1), (h, h), zero, False, 1, 0.0, False, False, False)[2].item() == 1.0


def test_a_gru_with_zero_weights_halves_its_state():
    zero = [cresset.zeros(3, 1)] * 2
    h = cresset.full((1, 1, 1), 8.0)
    assert cresset.gru(cresset.ones(3, 1, 1), h, zero, False, 1, 0.0, False, False, False)[1].item() == 1.0


def test_packed_sequences_end_at_their_own_length():
    one = [cresset.ones(1, 1)] * 2
    data = cresset.tensor([1.0, 10.0, 2.0, 3.0]).view(4, 1)  # 1 2 3, and 10
    output, last = cresset.rnn_relu(
        data, cresset.tensor([2, 1, 1]), cresset.zeros(1, 2, 1), one, False, 1, 0.0, False, False
    )
    assert output.flatten().tolist() == [1.0, 10.0, 3.0, 6.0]
    assert last.flatten().tolist() == [6.0, 10.0]


@pytest.mark.parametrize("mode, gates", [("LSTM", 4), ("GRU", 3), ("RNN_TANH", 1)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [(), (3, 2, 1)])
def test_gradients_to_the_second_order(mode, gates, reverse, sizes):
    cresset.manual_seed(0)
    x = drawn(6, 2) if sizes else drawn(3, 3, 2)
    h, c = drawn(3, 2), drawn(3, 2) if mode == "LSTM" else None
    weights = [drawn(2 * gates, 2), drawn(2 * gates, 2), drawn(2 * gates), drawn(2 * gates)]
    inputs = [x, h, *([c] if c is not None else []), *weights]

    def run(x, h, *rest):
        c, rest = (rest[0], rest[1:]) if mode == "LSTM" else (None, rest)
        return cresset._recurrence(x, h, c, *rest, None, sizes, mode, reverse, True)[: 3 if mode == "LSTM" else 2]

    assert gradcheck(run, inputs)
    assert gradgradcheck(run, inputs)


def test_gradients_with_a_projection():
    cresset.manual_seed(0)
    inputs = [drawn(3, 2, 2), drawn(2, 2), drawn(2, 3), drawn(12, 2), drawn(12, 2), drawn(2, 3)]

    def run(x, h, c, w_ih, w_hh, w_hr):
        return cresset._recurrence(x, h, c, w_ih, w_hh, None, None, w_hr, (), "LSTM", False, True)[:3]

    assert gradcheck(run, inputs)
    assert gradgradcheck(run, inputs)


def test_without_gradients_nothing_is_kept_and_the_numbers_are_the_same():
    layer, x = nn.LSTM(3, 4), cresset.randn(5, 2, 3)
    with cresset.no_grad():
        quiet = layer(x)[0]
    assert cresset.equal(quiet, layer(x)[0].detach())


def test_shapes_that_do_not_fit_are_refused():
    zero = [cresset.zeros(4, 1)] * 2
    h = cresset.zeros(1, 2, 1)
    with pytest.raises(RuntimeError, match="batch size 3 doesn't match hidden batch size 2"):
        cresset.lstm(cresset.zeros(5, 3, 1), (h, h), zero, False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="weight_ih of shape"):
        cresset.lstm(cresset.zeros(5, 2, 7), (h, h), zero, False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        cresset.lstm(cresset.zeros(5, 2, 1), (h, h), zero, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="inconsistent input_size: got 3 expected 1"):
        cresset.lstm_cell(cresset.zeros(2, 3), (h[0], h[0]), *zero)
    with pytest.raises(RuntimeError, match="must not grow"):
        cresset.lstm(cresset.zeros(5, 1), cresset.tensor([2, 1, 2]), (h, h), zero, False, 1, 0.0, False, False)


SCRIPT = """
import cresset, sys
cresset.set_num_threads(int(sys.argv[1]))
cresset.manual_seed(0)
for kind in ("LSTM", "GRU", "RNN"):
    layer, x = getattr(cresset.nn, kind)(64, 96), cresset.randn(20, 27, 64)
    out = layer(x)[0]
    (out * out).sum().backward()
    for t in (out, *(p.grad for p in layer.parameters())):
        print(t.detach().view(cresset.int32).sum().item())
"""


def test_the_bits_do_not_depend_on_the_number_of_threads():
    def run(threads):
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        return subprocess.run(
            [sys.executable, "-c", SCRIPT, threads], capture_output=True, text=True, check=True, env=environment
        ).stdout

    assert run("1") == run("2")


@pytest.mark.parametrize(("name", "gates"), [("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1)])
def test_the_weight_with_the_wrong_number_of_gates_is_named(name, gates):
    x, h = cresset.ones(2, 3), cresset.ones(2, 5)
    state = (h, h) if name == "lstm_cell" else h
    right, wrong = (cresset.ones(gates * 5, n) for n in (3, 5)), (cresset.ones(gates * 5 + 1, n) for n in (3, 5))
    (w_ih, w_hh), (longer_ih, longer_hh) = right, wrong
    with pytest.raises(RuntimeError, match="expected weight_ih"):
        getattr(cresset, name)(x, state, longer_ih, w_hh)
    with pytest.raises(RuntimeError, match="weight_hh of shape"):
        getattr(cresset, name)(x, state, w_ih, longer_hh)
