"""One step of a recurrent network, and one layer over all steps."""

import cresset


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(input W_ih^T + b_ih + h W_hh^T + b_hh)."""
    return (cresset.linear(input, w_ih, b_ih) + cresset.linear(hx, w_hh, b_hh)).tanh()


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """relu(input W_ih^T + b_ih + h W_hh^T + b_hh)."""
    return (cresset.linear(input, w_ih, b_ih) + cresset.linear(hx, w_hh, b_hh)).relu()


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The next (h, c) of a long short-term memory, from hx = (h, c); the weights hold the gates i, f, g, o."""
    return _lstm_step(cresset.linear(input, w_ih, b_ih), hx, w_hh, b_hh, None)


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The next h of a gated recurrent unit; the weights hold the gates r, z, n."""
    return _gru_step(cresset.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


# The steps below get the input's share of the gates, which a layer computes for all times at once.


def _lstm_step(from_input, hx, w_hh, b_hh, w_hr):
    h, c = hx
    i, f, g, o = (from_input + cresset.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if w_hr is None else cresset.linear(h, w_hr)), c


def _gru_step(from_input, h, w_hh, b_hh):
    r_in, z_in, n_in = from_input.chunk(3, -1)
    r_h, z_h, n_h = cresset.linear(h, w_hh, b_hh).chunk(3, -1)
    z = (z_in + z_h).sigmoid()
    n = (n_in + (r_in + r_h).sigmoid() * n_h).tanh()
    return n + z * (h - n)


def _step(mode, weights):
    """What advances a state (a tuple of tensors) by one step, given the input's share of the gates."""
    w_hh, b_hh, w_hr = weights
    if mode == "LSTM":
        return lambda x, state: _lstm_step(x, state, w_hh, b_hh, w_hr)
    if mode == "GRU":
        return lambda x, state: (_gru_step(x, state[0], w_hh, b_hh),)
    act = cresset.tanh if mode == "RNN_TANH" else cresset.relu
    return lambda x, state: (act(x + cresset.linear(state[0], w_hh, b_hh)),)


def run_direction(mode, data, batch_sizes, state, weights, reverse):
    """One layer in one direction.

    Args:
        data: the inputs of all times one after the other, (sum of batch_sizes, features).
        batch_sizes: how many sequences are still running at each time; they are sorted, the longest first.
        state: the tensors of the starting state, (sequences, features) each.
        weights: w_ih, w_hh, b_ih, b_hh, w_hr.

    Returns: the outputs, as `data` is laid out, and the final state.
    """
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    pieces = cresset.linear(data, w_ih, b_ih).split(batch_sizes)
    step = _step(mode, (w_hh, b_hh, w_hr))
    outputs, finished, start = [], [], state
    running = state[0].size(0)
    if reverse:
        running = batch_sizes[-1]
        state = tuple(s[:running] for s in start) if running < start[0].size(0) else start
        for x in reversed(pieces):
            count = x.size(0)
            if count > running:  # more sequences join on the way to the front
                state = tuple(cresset.cat([s, first[running:count]]) for s, first in zip(state, start, strict=True))
                running = count
            state = step(x, state)
            outputs.append(state[0])
        outputs.reverse()
        return cresset.cat(outputs), state
    for x in pieces:
        count = x.size(0)
        if count < running:  # the shorter sequences are done
            finished.append(tuple(s[count:] for s in state))
            state = tuple(s[:count] for s in state)
            running = count
        state = step(x, state)
        outputs.append(state[0])
    if finished:
        parts = [state, *reversed(finished)]
        state = tuple(cresset.cat([part[k] for part in parts]) for k in range(len(state)))
    return cresset.cat(outputs), state
