"""Recurrent layers. ONNX orders the gates otherwise: of LSTM input, output, forget, cell; of GRU update, reset, new."""

import cresset

from . import exports

ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN_TANH": [0], "RNN_RELU": [0]}


@exports("_recurrence")
def recurrence(g, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode, reverse):
    """One layer in one direction over (steps, batch, features). ONNX has a dimension for directions, of size one here."""
    if batch_sizes:
        raise g.unsupported("packed sequences; give the layer padded ones")
    if w_hr is not None:
        raise g.unsupported("a projected state (proj_size)")
    if mode not in ORDER:
        raise g.unsupported(f"mode {mode}")
    hidden, dtype = w_hh.shape[1], input.dtype
    weights = [g.unsqueeze(_reordered(g, w, mode, hidden), [0]) for w in (w_ih, w_hh)]
    bias = None
    if b_ih is not None or b_hh is not None:
        zeros = cresset.zeros(len(ORDER[mode]) * hidden, dtype=dtype)
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
        outputs, h = g.op("RNN", input, *weights, bias, None, state, outputs=2, activations=["Tanh" if mode == "RNN_TANH" else "Relu"], **settings)
    return [g.squeeze(outputs, [1]), g.squeeze(h, [0]), None, None]


def _reordered(g, weight, mode, hidden):
    """The rows of the gates in ONNX's order: a constant if the weight is one."""
    order = ORDER[mode]
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
