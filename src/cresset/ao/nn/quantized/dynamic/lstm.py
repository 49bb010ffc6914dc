"""The LSTM of dynamically quantized models."""

import cresset
from cresset import nn

from .linear import Linear


class LSTM(nn.Module):
    """nn.LSTM with int8 weights: the input and the state are quantized by their own extremes, the gates are in float32.

    Args: those of nn.LSTM; `proj_size` is not supported.

    Shape: as nn.LSTM.

    >>> layer = cresset.ao.nn.quantized.dynamic.LSTM.from_float(nn.LSTM(3, 2))
    >>> output, (h, c) = layer(cresset.zeros(4, 1, 3))
    >>> output.shape, h.shape
    (torch.Size([4, 1, 2]), torch.Size([1, 1, 2]))
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=cresset.qint8,
        **kwargs,
    ):
        super().__init__()
        if kwargs.get("proj_size"):
            raise NotImplementedError("dynamic.LSTM: proj_size is not implemented; keep this layer in floating point")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.dtype = (
            batch_first,
            float(dropout),
            bidirectional,
            dtype,
        )
        ways = 2 if bidirectional else 1
        self.from_input, self.from_state = nn.ModuleList(), nn.ModuleList()
        for layer in range(num_layers):
            for _ in range(ways):
                self.from_input.append(
                    Linear(input_size if layer == 0 else ways * hidden_size, 4 * hidden_size, bias, dtype)
                )
                self.from_state.append(Linear(hidden_size, 4 * hidden_size, bias, dtype))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of an nn.LSTM; its `qconfig` says how the weights are quantized."""
        new = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            proj_size=getattr(mod, "proj_size", 0),
        )  # fmt: skip
        place = 0
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse") if mod.bidirectional else ("",):
                for kind, target in (("ih", new.from_input), ("hh", new.from_state)):
                    weight = getattr(mod, f"weight_{kind}_l{layer}{suffix}")
                    holder = nn.Linear(weight.shape[1], weight.shape[0], bias=mod.bias)
                    holder.weight = nn.Parameter(weight.detach())
                    if mod.bias:
                        holder.bias = nn.Parameter(getattr(mod, f"bias_{kind}_l{layer}{suffix}").detach())
                    holder.qconfig = getattr(mod, "qconfig", None)
                    target[place] = Linear.from_float(holder)
                place += 1
        new.dtype = new.from_input[0].dtype
        return new.train(mod.training)

    def forward(self, input, hx=None):
        if isinstance(input, nn.utils.rnn.PackedSequence):
            raise NotImplementedError("dynamic.LSTM: packed sequences are not implemented; pad them")
        single = input.dim() == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        ways = 2 if self.bidirectional else 1
        if hx is None:
            zeros = x.new_zeros((self.num_layers * ways, x.shape[1], self.hidden_size))
            hx = (zeros, zeros)
        elif single:
            hx = tuple(part.unsqueeze(1) for part in hx)
        last_h, last_c = [], []
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                place = layer * ways + way
                sequence, h, c = self._run(x.flip(0) if way else x, hx[0][place], hx[1][place], place)
                outputs.append(sequence.flip(0) if way else sequence)
                last_h.append(h)
                last_c.append(c)
            x = cresset.cat(outputs, -1) if ways == 2 else outputs[0]
            if self.dropout and self.training and layer + 1 < self.num_layers:
                x = nn.functional.dropout(x, self.dropout)
        h, c = cresset.stack(last_h), cresset.stack(last_c)
        if single:
            return x.squeeze(1), (h.squeeze(1), c.squeeze(1))
        return (x.transpose(0, 1) if self.batch_first else x), (h, c)

    def _run(self, x, h, c, place):
        """One direction of one layer over a sequence (time, batch, features)."""
        seen, outputs = self.from_input[place](x), []
        for step in seen.unbind(0):
            i, f, g, o = (step + self.from_state[place](h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        return cresset.stack(outputs), h, c

    def _get_name(self):
        return "DynamicQuantizedLSTM"

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, dtype={self.dtype}"
