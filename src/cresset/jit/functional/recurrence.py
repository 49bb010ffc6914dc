"""Recurrent layers and cells."""

from typing import List, Optional, Tuple

import cresset as torch
from cresset import Tensor, nn

aten = torch.ops.aten


def checked(input: Tensor, input_size: int) -> bool:
    """Whether there is a batch."""
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D instead")
    if input.size(-1) != input_size:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {input_size}, got {input.size(-1)}")
    return input.dim() == 3


def check_state(state: Tensor, expected: List[int]) -> None:
    if state.size() != expected:
        raise RuntimeError(f"Expected hidden size {expected}, got {state.size()}")


def starting_state(hx: Optional[Tensor], batched: bool, expected: List[int], input: Tensor) -> Tensor:
    if hx is None:
        return torch.zeros(expected, dtype=input.dtype, device=input.device)
    if not batched:
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        hx = hx.unsqueeze(1)
    elif hx.dim() != 3:
        raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
    check_state(hx, expected)
    return hx


def lstm_forward(
    self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    batched = checked(input, self.input_size)
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    layers = self.num_layers * (2 if self.bidirectional else 1)
    width = self.proj_size if self.proj_size > 0 else self.hidden_size
    first: Optional[Tensor] = None
    second: Optional[Tensor] = None
    if hx is not None:
        first = hx[0]
        second = hx[1]
    hidden = starting_state(first, batched, [layers, input.size(batch_dim), width], input)
    cell = starting_state(second, batched, [layers, input.size(batch_dim), self.hidden_size], input)
    result = aten.lstm(
        input,
        [hidden, cell],
        self._flat_weights,
        bool(self.bias),
        self.num_layers,
        float(self.dropout),
        self.training,
        self.bidirectional,
        self.batch_first,
    )
    if not batched:
        return result[0].squeeze(batch_dim), (result[1].squeeze(1), result[2].squeeze(1))
    return result[0], (result[1], result[2])


def gru_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    batched = checked(input, self.input_size)
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    layers = self.num_layers * (2 if self.bidirectional else 1)
    hidden = starting_state(hx, batched, [layers, input.size(batch_dim), self.hidden_size], input)
    result = aten.gru(
        input,
        hidden,
        self._flat_weights,
        bool(self.bias),
        self.num_layers,
        float(self.dropout),
        self.training,
        self.bidirectional,
        self.batch_first,
    )
    if not batched:
        return result[0].squeeze(batch_dim), result[1].squeeze(1)
    return result[0], result[1]


def rnn_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    batched = checked(input, self.input_size)
    batch_dim = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(batch_dim)
    layers = self.num_layers * (2 if self.bidirectional else 1)
    hidden = starting_state(hx, batched, [layers, input.size(batch_dim), self.hidden_size], input)
    if self.mode == "RNN_TANH":
        result = aten.rnn_tanh(
            input,
            hidden,
            self._flat_weights,
            bool(self.bias),
            self.num_layers,
            float(self.dropout),
            self.training,
            self.bidirectional,
            self.batch_first,
        )
    else:
        result = aten.rnn_relu(
            input,
            hidden,
            self._flat_weights,
            bool(self.bias),
            self.num_layers,
            float(self.dropout),
            self.training,
            self.bidirectional,
            self.batch_first,
        )
    if not batched:
        return result[0].squeeze(batch_dim), result[1].squeeze(1)
    return result[0], result[1]


def cell_state(hx: Optional[Tensor], input: Tensor, width: int) -> Tensor:
    if hx is None:
        return torch.zeros([input.size(0), width], dtype=input.dtype, device=input.device)
    return hx if hx.dim() == 2 else hx.unsqueeze(0)


def check_cell(input: Tensor) -> bool:
    if input.dim() != 1 and input.dim() != 2:
        raise ValueError(f"RNNCell: Expected input to be 1D or 2D, got {input.dim()}D instead")
    return input.dim() == 2


def rnn_cell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = check_cell(input)
    if not batched:
        input = input.unsqueeze(0)
    state = cell_state(hx, input, self.hidden_size)
    if self.nonlinearity == "tanh":
        result = aten.rnn_tanh_cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    else:
        result = aten.rnn_relu_cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return result if batched else result.squeeze(0)


def gru_cell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = check_cell(input)
    if not batched:
        input = input.unsqueeze(0)
    result = aten.gru_cell(
        input, cell_state(hx, input, self.hidden_size), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
    )
    return result if batched else result.squeeze(0)


def lstm_cell_forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    batched = check_cell(input)
    if not batched:
        input = input.unsqueeze(0)
    first: Optional[Tensor] = None
    second: Optional[Tensor] = None
    if hx is not None:
        first = hx[0]
        second = hx[1]
    states = [cell_state(first, input, self.hidden_size), cell_state(second, input, self.hidden_size)]
    hidden, cell = aten.lstm_cell(input, states, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    if batched:
        return hidden, cell
    return hidden.squeeze(0), cell.squeeze(0)


STANDS_FOR = {
    "methods": {
        (nn.LSTM, "forward"): lstm_forward,
        (nn.GRU, "forward"): gru_forward,
        (nn.RNN, "forward"): rnn_forward,
        (nn.RNNCell, "forward"): rnn_cell_forward,
        (nn.GRUCell, "forward"): gru_cell_forward,
        (nn.LSTMCell, "forward"): lstm_cell_forward,
    }
}
