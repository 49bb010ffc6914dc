"""The recurrent layers of dynamically quantized models: int8 weights, the input and the state quantized by their own
extremes, the gates in float32.
"""

import cresset
from cresset import nn

from .linear import Linear


def _lstm_step(seen, recalled, state):
    h, c = state
    i, f, g, o = (recalled + seen).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_step(seen, recalled, state):
    (h,) = state
    (r_seen, z_seen, n_seen), (r, z, n) = seen.chunk(3, -1), recalled.chunk(3, -1)
    z, n = (z_seen + z).sigmoid(), (n_seen + (r_seen + r).sigmoid() * n).tanh()
    return ((h - n) * z + n,)


def _simple_step(function):
    return lambda seen, recalled, state: (function(recalled + seen),)


def _quantized(mod, kind, suffix=""):
    """The linear map with a layer's weight of this kind, ih or hh, as its `qconfig` wants it."""
    weight = getattr(mod, f"weight_{kind}{suffix}").detach()
    holder = nn.Linear(weight.shape[1], weight.shape[0], bias=mod.bias)
    holder.weight = nn.Parameter(weight)
    if mod.bias:
        holder.bias = nn.Parameter(getattr(mod, f"bias_{kind}{suffix}").detach(), requires_grad=False)
    holder.qconfig = getattr(mod, "qconfig", None)
    return Linear.from_float(holder)


class RNNBase(nn.Module):
    """What LSTM and GRU have in common. A subclass says how many gates and parts of the state there are."""

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        dtype=cresset.qint8, **kwargs,
    ):  # fmt: skip
        super().__init__()
        if kwargs.get("proj_size"):
            raise NotImplementedError(
                f"dynamic.{type(self).__name__}: proj_size is not implemented; keep this layer in floating point"
            )
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.dtype = dtype
        ways, rows = 2 if bidirectional else 1, self._gates * hidden_size
        self.from_input, self.from_state = nn.ModuleList(), nn.ModuleList()
        for layer in range(num_layers):
            for _ in range(ways):
                self.from_input.append(Linear(input_size if layer == 0 else ways * hidden_size, rows, bias, dtype))
                self.from_state.append(Linear(hidden_size, rows, bias, dtype))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of a layer of nn; its `qconfig` says how the weights are quantized."""
        new = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            proj_size=getattr(mod, "proj_size", 0),
        )  # fmt: skip
        ways = ("", "_reverse") if mod.bidirectional else ("",)
        suffixes = [f"_l{layer}{way}" for layer in range(mod.num_layers) for way in ways]
        for place, suffix in enumerate(suffixes):
            new.from_input[place] = _quantized(mod, "ih", suffix)
            new.from_state[place] = _quantized(mod, "hh", suffix)
        new.dtype = new.from_input[0]._packed_params.dtype
        return new.train(mod.training)

    def forward(self, input, hx=None):
        if isinstance(input, nn.utils.rnn.PackedSequence):
            raise NotImplementedError(f"dynamic.{type(self).__name__}: packed sequences are not implemented; pad them")
        single = input.dim() == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        ways = 2 if self.bidirectional else 1
        if hx is None:
            hx = (x.new_zeros((self.num_layers * ways, x.shape[1], self.hidden_size)),) * self._states
        else:
            hx = hx if isinstance(hx, tuple) else (hx,)
            hx = tuple(part.unsqueeze(1) for part in hx) if single else hx
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                place = layer * ways + way
                sequence, state = self._run(x.flip(0) if way else x, tuple(part[place] for part in hx), place)
                outputs.append(sequence.flip(0) if way else sequence)
                last.append(state)
            x = cresset.cat(outputs, -1) if ways == 2 else outputs[0]
            if self.dropout and self.training and layer + 1 < self.num_layers:
                x = nn.functional.dropout(x, self.dropout)
        state = tuple(cresset.stack(parts) for parts in zip(*last, strict=True))
        if single:
            x, state = x.squeeze(1), tuple(part.squeeze(1) for part in state)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, state if self._states > 1 else state[0]

    def _run(self, x, state, place):
        """One direction of one layer over a sequence (time, batch, features)."""
        seen, outputs = self.from_input[place](x), []
        for step in seen.unbind(0):
            state = self._step(step, self.from_state[place](state[0]), state)
            outputs.append(state[0])
        return cresset.stack(outputs), state

    def _get_name(self):
        return "DynamicQuantized" + type(self).__name__

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        return text + "".join(f", {name}={getattr(self, name)}" for name in usual if getattr(self, name) != usual[name])

    def __repr__(self):  # without the maps inside
        return f"{self._get_name()}({self.extra_repr()})"


class LSTM(RNNBase):
    """nn.LSTM with int8 weights.

    Args: those of nn.LSTM; `proj_size` is not supported.

    Shape: as nn.LSTM.

    >>> layer = cresset.ao.nn.quantized.dynamic.LSTM.from_float(nn.LSTM(3, 2))
    >>> output, (h, c) = layer(cresset.zeros(4, 1, 3))
    >>> output.shape, h.shape
    (torch.Size([4, 1, 2]), torch.Size([1, 1, 2]))
    """

    _FLOAT_MODULE = nn.LSTM
    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)


class GRU(RNNBase):
    """nn.GRU with int8 weights.

    Args, Shape: those of nn.GRU.

    >>> layer = cresset.ao.nn.quantized.dynamic.GRU.from_float(nn.GRU(3, 2))
    >>> layer(cresset.zeros(4, 1, 3))[0].shape
    torch.Size([4, 1, 2])
    """

    _FLOAT_MODULE = nn.GRU
    _gates, _states, _step = 3, 1, staticmethod(_gru_step)


class RNNCellBase(nn.Module):
    """What the cells have in common: one step of a recurrent layer."""

    _states = 1

    def __init__(self, input_size, hidden_size, bias=True, dtype=cresset.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        self.from_input = Linear(input_size, self._gates * hidden_size, bias, dtype)
        self.from_state = Linear(hidden_size, self._gates * hidden_size, bias, dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of a cell of nn; its `qconfig` says how the weights are quantized."""
        new = cls(mod.input_size, mod.hidden_size, mod.bias)
        new.from_input, new.from_state = _quantized(mod, "ih"), _quantized(mod, "hh")
        new.weight_dtype = new.from_input._packed_params.dtype
        return new.train(mod.training)

    def forward(self, input, hx=None):
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]}, expected {self.input_size}")
        if hx is None:
            hx = (input.new_zeros((*input.shape[:-1], self.hidden_size)),) * self._states
        state = hx if isinstance(hx, (tuple, list)) else (hx,)
        state = self._step(self.from_input(input), self.from_state(state[0]), tuple(state))
        return state if self._states > 1 else state[0]

    def _get_name(self):
        return "DynamicQuantized" + type(self).__name__

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def __repr__(self):  # without the maps inside
        return f"{self._get_name()}({self.extra_repr()})"


class LSTMCell(RNNCellBase):
    """nn.LSTMCell with int8 weights."""

    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)


class GRUCell(RNNCellBase):
    """nn.GRUCell with int8 weights."""

    _gates, _step = 3, staticmethod(_gru_step)


class RNNCell(RNNCellBase):
    """nn.RNNCell with int8 weights.

    Args:
        nonlinearity: "tanh" or "relu".
    """

    _gates = 1

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=cresset.qint8):
        super().__init__(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of an nn.RNNCell."""
        new = super().from_float(mod, use_precomputed_fake_quant)
        new.nonlinearity = mod.nonlinearity
        return new

    def extra_repr(self):
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")

    @property
    def _step(self):
        return _simple_step(cresset.tanh if self.nonlinearity == "tanh" else cresset.relu)
