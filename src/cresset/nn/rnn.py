"""Recurrent layers: RNN, LSTM and GRU over sequences, and their single cells."""

import math
import numbers
import warnings

import cresset
from cresset import _native

from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What the recurrent layers share.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: layers on top of each other.
        bias: learn biases.
        batch_first: sequences are (N, L, features) instead of (L, N, features).
        dropout: probability of dropout between layers.
        bidirectional: read the sequence backwards, too.
        proj_size: LSTM only: project the output to this many features.
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False,
        proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                "num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        for name, value, kind in (
            ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
            ("bias", bias, bool),
            ("batch_first", batch_first, bool),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)

        gates = _GATES[mode] * hidden_size
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(self._directions):
                inputs = input_size if layer == 0 else self._output_size * self._directions
                shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, self._output_size)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(cresset.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self):
        return self.proj_size or self.hidden_size

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    def __getstate__(self):
        """PyTorch's layers keep the lists of weights; those of a file are theirs."""
        weights = [getattr(self, name, None) for name in self._flat_weights_names]
        return {**super().__getstate__(), "_flat_weights_names": self._flat_weights_names, "_flat_weights": weights}

    def __setstate__(self, state):
        super().__setstate__(
            {name: value for name, value in state.items() if name not in ("_flat_weights_names", "_flat_weights")}
        )

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Without effect; PyTorch's GPU library wants the weights in one piece."""

    def reset_parameters(self):
        """Draw new starting values, evenly from [-k, k] with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Refuse an input of the wrong shape or, where autocast does not bring them together, of the wrong dtype."""
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not _native.autocast_mask():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Refuse a state of the wrong shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def _starting_state(self, hx, samples, like):
        """The starting state, a tuple of (layers * directions, samples, features), checked or made of zeros."""
        count = self.num_layers * self._directions
        shapes = [(count, samples, self._output_size)]
        if self.mode == "LSTM":
            shapes.append((count, samples, self.hidden_size))
        if hx is None:
            return tuple(cresset.zeros(shape, dtype=like.dtype, device=like.device) for shape in shapes)
        state = tuple(hx) if self.mode == "LSTM" else (hx,)
        names = ("hidden[0] ", "hidden[1] ") if self.mode == "LSTM" else ("hidden ",)
        for name, tensor, shape in zip(names, state, shapes, strict=True):
            self.check_hidden_size(tensor, shape, "Expected " + name + "size {}, got {}")
        return state

    def forward(self, input, hx=None):
        """The outputs of the last layer at all times, and the final state of all layers."""
        packed = isinstance(input, PackedSequence)
        batched = True
        if packed:
            data, batch_sizes, sorted_indices, unsorted_indices = input
            samples = int(batch_sizes[0])
            if hx is not None and sorted_indices is not None:
                hx = self.permute_hidden(hx, sorted_indices)
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            if not batched:
                input = input.unsqueeze(1)
                hx = self._with_batch(hx)
            if batched and hx is not None:
                self._check_state_dims(hx)
            batch_first = batched and self.batch_first
            samples, data = input.size(0 if batch_first else 1), input
        self.check_input(data, input.batch_sizes if packed else None)
        state = self._starting_state(hx, samples, data)
        weights = [getattr(self, name) for names in self._all_weights for name in names]
        settings = (weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        run, start = getattr(cresset, self.mode.lower()), self._unwrapped(state)
        output, *final = (
            run(data, batch_sizes, start, *settings) if packed else run(data, start, *settings, batch_first)
        )
        final = tuple(final)

        if packed:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(self._unwrapped(final), unsorted_indices)
        if not batched:
            return output.squeeze(1), self._unwrapped(tuple(f.squeeze(1) for f in final))
        return output, self._unwrapped(final)

    def _unwrapped(self, state):
        return state if self.mode == "LSTM" else state[0]

    def _with_batch(self, hx):
        if hx is None:
            return None
        for h in hx if self.mode == "LSTM" else (hx,):
            if h.dim() != 2:
                if self.mode == "LSTM":
                    raise RuntimeError(
                        "For unbatched 2-D input, hx and cx should also be 2-D but got "
                        f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                    )
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {h.dim()}-D tensor")
        return tuple(h.unsqueeze(1) for h in hx) if self.mode == "LSTM" else hx.unsqueeze(1)

    def _check_state_dims(self, hx):
        for h in hx if self.mode == "LSTM" else (hx,):
            if h.dim() != 3:
                if self.mode == "LSTM":
                    raise RuntimeError(
                        f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, "
                        f"{hx[1].dim()}-D) tensors"
                    )
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {h.dim()}-D tensor")

    def permute_hidden(self, hx, permutation):
        """The state with its sequences in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence; relu instead of tanh by `nonlinearity`.

    >>> output, h = nn.RNN(4, 8)(cresset.zeros(5, 2, 4))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 8]), torch.Size([1, 2, 8]))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory over a sequence; the state is (h, c).

    >>> output, (h, c) = nn.LSTM(4, 8, batch_first=True)(cresset.zeros(2, 5, 4))
    >>> output.shape, c.shape
    (torch.Size([2, 5, 8]), torch.Size([1, 2, 8]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit over a sequence.

    >>> output, h = nn.GRU(4, 8, bidirectional=True)(cresset.zeros(5, 2, 4))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 16]), torch.Size([2, 2, 8]))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: two weights and two biases."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        made = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(cresset.empty((num_chunks * hidden_size, input_size), **made))
        self.weight_hh = Parameter(cresset.empty((num_chunks * hidden_size, hidden_size), **made))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(cresset.empty(num_chunks * hidden_size, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new starting values, evenly from [-k, k] with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _advance(self, cell, input, hx, states=1):
        """Run `cell` on a batch, or on a single sample as a batch of one."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        given = hx if states > 1 else (hx,)
        if hx is not None:
            for number, h in enumerate(given):
                if h.dim() not in (1, 2):
                    which = f"hx[{number}]" if states > 1 else "hidden"
                    raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {h.dim()}D instead")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = cresset.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            given = (zeros,) * states
        elif not batched:
            given = tuple(h.unsqueeze(0) for h in given)
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        for place, h in enumerate(given):
            if h.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{place} batch size {h.size(0)}"
                )
            if h.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{place} has inconsistent hidden_size: got {h.size(1)}, expected {self.hidden_size}"
                )
        state = given if states > 1 else given[0]
        result = cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if batched:
            return result
        return tuple(r.squeeze(0) for r in result) if states > 1 else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an RNN: (N, input_size) and (N, hidden_size) to (N, hidden_size)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = cresset.rnn_tanh_cell if self.nonlinearity == "tanh" else cresset.rnn_relu_cell
        return self._advance(cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (N, input_size) and (h, c) to the next (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._advance(cresset.lstm_cell, input, hx, states=2)


class GRUCell(RNNCellBase):
    """One step of a GRU: (N, input_size) and (N, hidden_size) to (N, hidden_size)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._advance(cresset.gru_cell, input, hx)
