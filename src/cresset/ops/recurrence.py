"""Recurrent networks: the step of each kind of cell, a layer over all steps, and networks of several layers and
directions.

A layer in one direction is one native operator, with a native derivative: for float and double, and on CUDA for half
    precision too. When that
shall itself be differentiated (create_graph), and for other dtypes and devices, the layer is made of ordinary
operators, step by step.
"""

import functools
import itertools

import cresset

from .._native import name_node
from . import autocast
from .registry import function, onnx, operator

_MODES = {"LSTM": 2, "GRU": 1, "RNN_TANH": 1, "RNN_RELU": 1}  # and of how many tensors their state is made

_recurrence = operator(
    "_recurrence",
    """One recurrent layer in one direction over all steps: the outputs, the final state (and cell), and what backward
    needs.

    Args:
        input: (steps, batch, features), or packed: (rows of all steps, features).
        hx, cx: the starting state and, for an LSTM, its cell.
        batch_sizes: of a packed input, how many sequences are running at each step.
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        keep: whether backward will be asked for.

    >>> one, w = cresset.ones(3, 1, 1), cresset.ones(1, 1)
    >>> cresset._recurrence(one, w * 0, None, w, w, None, None, None, (), "RNN_RELU", False, False)[0].flatten()
    tensor([1., 2., 3.])
    """,
)
operator(
    "_recurrence_backward",
    """Backward of `_recurrence` over all steps: the gradients of the gates and of the starting state.""",
)


@_recurrence.derivative
def _(grads, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode, reverse, output, reserve, needs):
    if cresset.is_grad_enabled():
        tensors = (input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr)
        gradients = _differentiable_gradients(grads, tensors, batch_sizes, mode, reverse, needs)
        for gradient in gradients:
            yield lambda gradient=gradient: gradient
        return
    gates, hidden_gates, previous, projected, unprojected, grad_hx, grad_cx = cresset._recurrence_backward(
        *grads[:3], output, hx, cx, w_hh, w_hr, reserve, batch_sizes, mode, reverse
    )
    if mode != "GRU":
        hidden_gates = gates
    yield lambda: (gates @ w_ih).view(input.shape)
    yield lambda: grad_hx
    yield lambda: grad_cx
    yield lambda: gates.mT @ input.reshape(-1, input.size(-1))
    yield lambda: hidden_gates.mT @ previous
    yield lambda: gates.sum(0)
    yield lambda: hidden_gates.sum(0)
    yield lambda: projected.mT @ unprojected


def _differentiable_gradients(grads, tensors, batch_sizes, mode, reverse, needs):
    """The gradients of `tensors`, of ordinary operators. Those in `needs` may come from forward mode and then want no
    gradient yet.
    """
    tensors = [
        t.detach().requires_grad_() if need and not t.requires_grad else t
        for t, need in zip(tensors, needs, strict=True)
    ]
    input, hx, cx, *weights = tensors
    state = (hx,) if cx is None else (hx, cx)
    output, final = _by_steps(mode, input, batch_sizes, state, weights, reverse)
    wanted = [t for t, need in zip(tensors, needs, strict=True) if need]
    results = (output, *final)
    found = iter(cresset.autograd.grad(results, wanted, grads[: len(results)], create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needs]


# --- single steps ---


def _share(input, weight, bias, size, which):
    if input.size(-1) != weight.size(1):
        raise RuntimeError(f"{which} has inconsistent {size}: got {input.size(-1)} expected {weight.size(1)}")
    return cresset.linear(input, weight, bias)


# What PyTorch calls the nodes of the next state (of an LSTM's, which is one node here, that of h).
_CELL_NODES = {"LSTM": "MulBackward0", "GRU": "AddBackward0", "RNN_TANH": "TanhBackward0", "RNN_RELU": "ReluBackward0"}
_FUSED_NODES = {"LSTM": "ThnnFusedLstmCellBackward0", "GRU": "ThnnFusedGruCellBackward0"}  # on CUDA


def _cell(mode, input, state, w_ih, w_hh, b_ih, b_hh):
    """The next state of one step for a batch."""
    if input.ndim == 2 and state[0].ndim == 2 and _is_native(input, *state, w_ih, w_hh, b_ih, b_hh):
        if input.size(1) != w_ih.size(1):
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
        if state[0].size(1) != w_hh.size(1):
            raise RuntimeError(f"hidden has inconsistent hidden_size: got {state[0].size(1)}, expected {w_hh.size(1)}")
        following = _native_layer(mode, input.unsqueeze(0), (), state, (w_ih, w_hh, b_ih, b_hh, None), False)[1]
        return name_node(following, (_FUSED_NODES if input.is_cuda and mode in _FUSED_NODES else _CELL_NODES)[mode])
    step = _step(mode, (w_hh, b_hh, None))
    return step(_share(input, w_ih, b_ih, "input_size", "input"), state)


@function(autocast="lower")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(input W_ih^T + b_ih + h W_hh^T + b_hh).

    >>> one = cresset.ones(1, 1)
    >>> cresset.rnn_tanh_cell(one, one, one, -one)
    tensor([[0.]])
    """
    return _cell("RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@function(autocast="lower")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """relu(input W_ih^T + b_ih + h W_hh^T + b_hh).

    >>> one = cresset.ones(1, 1)
    >>> cresset.rnn_relu_cell(one, one, one, one)
    tensor([[2.]])
    """
    return _cell("RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@function(autocast={"cuda": "lower"})
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> tuple:
    """The next (h, c) of a long short-term memory, from hx = (h, c); the weights hold the gates i, f, g, o.

    >>> one = cresset.ones(1, 1)
    >>> h, c = cresset.lstm_cell(one, (one, one), cresset.zeros(4, 1), cresset.zeros(4, 1))
    >>> c
    tensor([[0.5000]])
    """
    return tuple(_cell("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh))


@function(autocast={"cuda": "lower"})
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The next h of a gated recurrent unit; the weights hold the gates r, z, n.

    >>> one = cresset.ones(1, 1)
    >>> cresset.gru_cell(one, one, cresset.zeros(3, 1), cresset.zeros(3, 1))
    tensor([[0.5000]])
    """
    return _cell("GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


# --- a layer, of ordinary operators ---
# The steps get the inputs' share of the gates, which is computed for all times at once.


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


def _by_steps(mode, data, batch_sizes, state, weights, reverse):
    """One layer in one direction: see `_layer`."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    first, sequences = data.size(1) if data.ndim == 3 else next(iter(batch_sizes), 0), state[0].size(0)
    if first != sequences:
        raise RuntimeError(f"recurrence: Input batch size {first} doesn't match hidden batch size {sequences}")
    for before, count in itertools.pairwise(batch_sizes):
        if not 0 <= count <= before:
            raise RuntimeError(f"recurrence: batch sizes must not grow from step to step; got {count} after {before}")
    wanted = (w_hh.size(0), data.size(-1))
    if w_ih.shape != wanted:
        raise RuntimeError(f"recurrence: expected weight_ih of shape {list(wanted)}, got {list(w_ih.shape)}")
    projected = cresset.linear(data, w_ih, b_ih)
    pieces = projected.unbind(0) if data.ndim == 3 else projected.split(list(batch_sizes))
    join = cresset.stack if data.ndim == 3 else cresset.cat
    step = _step(mode, (w_hh, b_hh, w_hr))
    outputs, finished, start = [], [], state
    if reverse:
        running = pieces[-1].size(0)
        state = tuple(s[:running] for s in start) if running < start[0].size(0) else start
        for x in reversed(pieces):
            count = x.size(0)
            if count > running:  # more sequences join on the way to the front
                state = tuple(cresset.cat([s, first[running:count]]) for s, first in zip(state, start, strict=True))
                running = count
            state = step(x, state)
            outputs.append(state[0])
        outputs.reverse()
        return join(outputs), state
    running = state[0].size(0)
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
    return join(outputs), state


def _is_native(*tensors):
    first = tensors[0]
    dtype = first.dtype
    if dtype not in _NATIVE.get(first.device.type, ()):
        return False
    return all(t is None or t.dtype is dtype for t in tensors)


_NATIVE = {
    "cpu": (cresset.float32, cresset.float64),
    "meta": (cresset.float32, cresset.float64),
    "cuda": (cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16),
}


def _native_layer(mode, data, batch_sizes, state, weights, reverse):
    h, c = state if len(state) == 2 else (state[0], None)
    keep = cresset.is_grad_enabled() and any(t is not None and t.requires_grad for t in (data, h, c, *weights))
    output, *final = cresset._recurrence(data, h, c, *weights, batch_sizes, mode, reverse, keep)
    return output, tuple(final[: len(state)])


def _layer(mode, data, batch_sizes, state, weights, reverse):
    """One layer in one direction.

    Args:
        data: (steps, batch, features); or packed, the inputs of all times one after the other.
        batch_sizes: of packed data, how many sequences are still running at each time; they are sorted, the longest
            first.
        state: the tensors of the starting state, (sequences, features) each.
        weights: w_ih, w_hh, b_ih, b_hh, w_hr; None for those there are not.

    Returns: the outputs, as `data` is laid out, and the final state.
    """
    half = data.dtype
    on_host = data.device.type in ("cpu", "meta")
    if (
        on_host
        and half in (cresset.float16, cresset.bfloat16)
        and all(t is None or t.dtype is half for t in (*state, *weights))
        and (not cresset._native.autocast_mask() or cresset.get_autocast_dtype("cpu") is half)
    ):
        # The native layer, in float32, is both faster and closer than steps in half precision. Under autocast in the
        # other one, steps are of two kinds.
        wide, *others = (None if t is None else t.float() for t in (data, *state, *weights))
        output, final = _layer(
            mode, wide, batch_sizes, tuple(others[: len(state)]), tuple(others[len(state) :]), reverse
        )
        return output.to(half), tuple(f.to(half) for f in final)
    run = _native_layer if _is_native(data, *state, *weights) else _by_steps
    return run(mode, data, batch_sizes, state, weights, reverse)


# --- networks ---


def network(mode, *args, **kwargs):
    """`_network`, in the precision that autocast has for its mode."""
    return _NETWORKS[mode.lower()](*args, **kwargs)


def _network(mode, data, batch_sizes, state, weights, dropout=0.0, train=False, bidirectional=False):
    """Layers on top of each other, in one direction or in both.

    Args:
        data, batch_sizes: see `_layer`; batch_sizes is () for data that is not packed.
        state: the tensors of the starting state, (layers * directions, sequences, features) each.
        weights: five for each layer and direction; see `_layer`.
        dropout: between layers, when training.

    Returns: the outputs of the last layer and the final state of all.
    """
    directions = 2 if bidirectional else 1
    finals = []
    for first in range(0, len(weights), directions):
        outputs = []
        for number in range(first, first + directions):
            output, final = _layer(
                mode, data, batch_sizes, tuple(s[number] for s in state), weights[number], number > first
            )
            outputs.append(output)
            finals.append(final)
        data = outputs[0] if directions == 1 else cresset.cat(outputs, -1)
        if dropout and train and first + directions < len(weights):
            data = cresset.dropout(data, dropout, train)
    if len(finals) == 1:
        final = name_node(tuple(f.unsqueeze(0) for f in finals[0]), "StackBackward0")
    else:
        final = tuple(cresset.stack([f[k] for f in finals]) for k in range(len(state)))
    if data.is_cuda:
        name_node((data, *final), "CudnnRnnBackward0")
    elif batch_sizes:
        name_node(data, "CatBackward0")
    elif directions == 1:
        name_node(data, "MkldnnRnnLayerBackward0" if mode == "LSTM" else "StackBackward0")
    return data, final


_NETWORKS = {mode.lower(): functools.partial(_network, mode) for mode in _MODES}
for _mode, _run in _NETWORKS.items():
    autocast.autocast("lower" if _mode != "gru" else {"cuda": "lower"})(_run)
autocast.apply(_NETWORKS)


def _grouped(name, params, has_biases, num_layers, bidirectional, projects):
    """A flat list of parameters as five weights for each layer and direction."""
    per, count = 2 + 2 * bool(has_biases) + projects, num_layers * (2 if bidirectional else 1)
    if len(params) != per * count:
        raise RuntimeError(f"{name}: got an incorrect number of RNN parameters: {len(params)} instead of {per * count}")
    groups = []
    for first in range(0, len(params), per):
        w_ih, w_hh, *rest = params[first : first + per]
        w_hr = rest.pop() if projects else None
        groups.append((w_ih, w_hh, *(rest or (None, None)), w_hr))
    return groups


def _call(mode, name, packed, args):
    """The common part of lstm, gru, rnn_tanh and rnn_relu, from PyTorch's arguments."""
    if packed:
        data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional = args
        sizes, batch_first = batch_sizes.tolist(), False
    else:
        data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
        sizes = ()
    state = tuple(hx) if mode == "LSTM" else (hx,)
    if len(state) != _MODES[mode]:
        raise RuntimeError(f"{name} expects {_MODES[mode]} hidden states, got {len(state)}")
    if batch_first:
        data = data.transpose(0, 1)
    if data.size(0) == 0:
        raise RuntimeError(f"{name}: Expected sequence length to be larger than 0 in RNN")
    projects = mode == "LSTM" and state[0].size(-1) != state[1].size(-1)
    weights = _grouped(name, list(params), has_biases, num_layers, bidirectional, projects)
    output, final = network(mode, data, sizes, state, weights, dropout, train, bidirectional)
    if batch_first:
        output = output.transpose(0, 1)
        if mode != "LSTM" and not output.is_cuda:
            name_node(output, "TransposeBackward1")
    return output, *final


_NAMES = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED_NAMES = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _bound(name, args, kwargs):
    """Whether the call is of the packed form, and its arguments in order."""
    packed = "batch_sizes" in kwargs or "data" in kwargs or (len(args) > 2 and isinstance(args[2], cresset.Tensor))
    if len(args) > 3 and isinstance(args[1], cresset.Tensor) and isinstance(args[3], (list, tuple)):
        packed = True
    names = _PACKED_NAMES if packed else _NAMES
    if len(args) > len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments, got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key in given or key not in names:
            raise TypeError(f"{name}() got an unexpected or repeated keyword argument {key!r}")
        given[key] = value
    missing = [key for key in names if key not in given]
    if missing:
        raise TypeError(f"{name}() missing required arguments: {', '.join(missing)}")
    return packed, [given[key] for key in names]


@function(autocast="lower")
def lstm(*args, **kwargs) -> tuple:
    """An LSTM network: (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or for
    packed sequences (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).

    Args:
        hx: (h, c), each (layers * directions, batch, features).
        params: w_ih, w_hh, and b_ih, b_hh if has_biases, for each layer and direction.

    Returns: the outputs of the last layer, and the final h and c.

    >>> w = [cresset.zeros(4, 1)] * 2
    >>> h = cresset.ones(1, 1, 1)
    >>> cresset.lstm(cresset.ones(2, 1, 1), (h, h), w, False, 1, 0.0, False, False, False)[2]
    tensor([[[0.2500]]])
    """
    packed, given = _bound("lstm", args, kwargs)
    return _call("LSTM", "lstm", packed, given)


@function(autocast={"cuda": "lower"})
def gru(*args, **kwargs) -> tuple:
    """A GRU network; arguments as of `lstm`, but hx is a single tensor.

    >>> w = [cresset.zeros(3, 1)] * 2
    >>> cresset.gru(cresset.ones(2, 1, 1), cresset.ones(1, 1, 1), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.2500]]])
    """
    packed, given = _bound("gru", args, kwargs)
    return _call("GRU", "gru", packed, given)


@function(autocast="lower")
def rnn_tanh(*args, **kwargs) -> tuple:
    """A network of plain cells with tanh; arguments as of `gru`.

    >>> w = [cresset.zeros(1, 1)] * 2
    >>> cresset.rnn_tanh(cresset.ones(2, 1, 1), cresset.ones(1, 1, 1), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.]]])
    """
    packed, given = _bound("rnn_tanh", args, kwargs)
    return _call("RNN_TANH", "rnn_tanh", packed, given)


@function(autocast="lower")
def rnn_relu(*args, **kwargs) -> tuple:
    """A network of plain cells with relu; arguments as of `gru`.

    >>> w = [cresset.ones(1, 1)] * 2
    >>> cresset.rnn_relu(cresset.ones(2, 1, 1), cresset.ones(1, 1, 1), w, False, 1, 0.0, False, False, False)[1]
    tensor([[[3.]]])
    """
    packed, given = _bound("rnn_relu", args, kwargs)
    return _call("RNN_RELU", "rnn_relu", packed, given)


# --- as ONNX, which orders the gates otherwise: of LSTM input, output, forget, cell; of GRU update, reset, new ---


_ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN_TANH": [0], "RNN_RELU": [0]}


@onnx("_recurrence")
def _(g, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode, reverse):
    """One layer in one direction over (steps, batch, features). ONNX has a dimension for directions, of size one
    here."""
    if batch_sizes:
        raise g.unsupported("packed sequences; give the layer padded ones")
    if w_hr is not None:
        raise g.unsupported("a projected state (proj_size)")
    if mode not in _ORDER:
        raise g.unsupported(f"mode {mode}")
    hidden, dtype = w_hh.shape[1], input.dtype
    weights = [g.unsqueeze(_reordered(g, w, mode, hidden), [0]) for w in (w_ih, w_hh)]
    bias = None
    if b_ih is not None or b_hh is not None:
        zeros = cresset.zeros(len(_ORDER[mode]) * hidden, dtype=dtype)
        both = [g.initializer(zeros) if b is None else _reordered(g, b, mode, hidden) for b in (b_ih, b_hh)]
        bias = g.unsqueeze(g.op("Concat", *both, axis=0), [0])
    settings = {"hidden_size": hidden, "direction": "reverse" if reverse else "forward"}
    state = g.unsqueeze(hx, [0])
    if mode == "LSTM":
        outputs, h, c = g.op("LSTM", input, *weights, bias, None, state, g.unsqueeze(cx, [0]), outputs=3, **settings)
        return [g.squeeze(outputs, [1]), g.squeeze(h, [0]), g.squeeze(c, [0]), None]
    if mode == "GRU":
        outputs, h = g.op("GRU", input, *weights, bias, None, state, outputs=2, linear_before_reset=1, **settings)
    else:
        outputs, h = g.op(
            "RNN",
            input,
            *weights,
            bias,
            None,
            state,
            outputs=2,
            activations=["Tanh" if mode == "RNN_TANH" else "Relu"],
            **settings,
        )
    return [g.squeeze(outputs, [1]), g.squeeze(h, [0]), None, None]


def _reordered(g, weight, mode, hidden):
    """The rows of the gates in ONNX's order: a constant if the weight is one."""
    order = _ORDER[mode]
    if len(order) == 1:
        return g.name(weight)
    if weight.data is None:
        parts = g.op("Split", weight, g.ints([hidden] * len(order)), axis=0, outputs=len(order))
        return g.op("Concat", *(parts[k] for k in order), axis=0)
    key = ("gates", id(weight.data))
    if key not in g.known:
        data = weight.data.detach()
        name = f"{weight.parameter}.gates" if isinstance(weight.parameter, str) else None
        g.known[key] = g.initializer(cresset.cat([data[k * hidden : (k + 1) * hidden] for k in order]), name)
    return g.known[key]
