"""Sequences without padding, and recurrent layers on them."""

from typing import List, Optional, Tuple

import cresset as torch
from cresset import Tensor, nn
from cresset.nn.utils import rnn
from cresset.nn.utils.rnn import PackedSequence

aten = torch.ops.aten


def inverse(permutation: Tensor) -> Tensor:
    result = torch.empty_like(permutation)
    return result.scatter_(0, permutation, torch.arange(permutation.numel(), device=permutation.device))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    places: Optional[Tensor] = None
    unsorted: Optional[Tensor] = None
    if not enforce_sorted:
        order = torch.argsort(lengths, descending=True).to(input.device)
        lengths = lengths.index_select(0, order.cpu())
        input = input.index_select(0 if batch_first else 1, order)
        places = order
        unsorted = inverse(order)
    data, sizes = aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, places, unsorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"{total_length}"
            )
        longest = total_length
    padded, lengths = aten._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, longest
    )
    places = sequence.unsorted_indices
    if places is not None:
        return padded.index_select(0 if batch_first else 1, places), lengths.index_select(0, places.cpu())
    return padded, lengths


def state_of(hx: Optional[Tensor], size: List[int], sequence: PackedSequence) -> Tensor:
    if hx is None:
        return torch.zeros(size, dtype=sequence.data.dtype, device=sequence.data.device)
    if hx.size() != size:
        raise RuntimeError(f"Expected hidden size {size}, got {hx.size()}")
    places = sequence.sorted_indices
    return hx if places is None else hx.index_select(1, places)


def given_back(hidden: Tensor, sequence: PackedSequence) -> Tensor:
    places = sequence.unsorted_indices
    return hidden if places is None else hidden.index_select(1, places)


def lstm_forward(
    self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
    count = int(input.batch_sizes[0].item())
    layers = self.num_layers * (2 if self.bidirectional else 1)
    width = self.proj_size if self.proj_size > 0 else self.hidden_size
    first: Optional[Tensor] = None
    second: Optional[Tensor] = None
    if hx is not None:
        first = hx[0]
        second = hx[1]
    hidden = state_of(first, [layers, count, width], input)
    cell = state_of(second, [layers, count, self.hidden_size], input)
    result = aten.lstm(
        input.data, input.batch_sizes, [hidden, cell], self._flat_weights, bool(self.bias), self.num_layers,
        float(self.dropout), self.training, self.bidirectional,
    )  # fmt: skip
    packed = PackedSequence(result[0], input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return packed, (given_back(result[1], input), given_back(result[2], input))


def gru_forward(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    count = int(input.batch_sizes[0].item())
    layers = self.num_layers * (2 if self.bidirectional else 1)
    hidden = state_of(hx, [layers, count, self.hidden_size], input)
    result = aten.gru(
        input.data, input.batch_sizes, hidden, self._flat_weights, bool(self.bias), self.num_layers,
        float(self.dropout),
        self.training, self.bidirectional,
    )  # fmt: skip
    packed = PackedSequence(result[0], input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return packed, given_back(result[1], input)


def rnn_forward(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    count = int(input.batch_sizes[0].item())
    layers = self.num_layers * (2 if self.bidirectional else 1)
    hidden = state_of(hx, [layers, count, self.hidden_size], input)
    if self.mode == "RNN_TANH":
        result = aten.rnn_tanh(
            input.data, input.batch_sizes, hidden, self._flat_weights, bool(self.bias), self.num_layers,
            float(self.dropout), self.training, self.bidirectional,
        )  # fmt: skip
    else:
        result = aten.rnn_relu(
            input.data, input.batch_sizes, hidden, self._flat_weights, bool(self.bias), self.num_layers,
            float(self.dropout), self.training, self.bidirectional,
        )  # fmt: skip
    packed = PackedSequence(result[0], input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return packed, given_back(result[1], input)


STANDS_FOR = {
    rnn: {"pack_padded_sequence": pack_padded_sequence, "pad_packed_sequence": pad_packed_sequence},
    "packed": {nn.LSTM: lstm_forward, nn.GRU: gru_forward, nn.RNN: rnn_forward},
}
