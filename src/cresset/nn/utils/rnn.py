"""Sequences of different lengths: padded to one length, or packed without the padding, step by step."""

from collections import namedtuple

import cresset

_Fields = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])  # type: ignore[name-match]


def invert_permutation(permutation):
    """The permutation that undoes `permutation`."""
    if permutation is None:
        return None
    result = cresset.empty_like(permutation, memory_format=cresset.contiguous_format)
    return result.scatter_(0, permutation, cresset.arange(permutation.numel(), device=permutation.device))


class PackedSequence(_Fields):
    """Sequences without padding: the first elements of all, then the second elements of those that have one, ...

    Args:
        data: all elements, (total, features).
        batch_sizes: how many sequences still run at each step, on the CPU.
        sorted_indices: which sequence each place holds; the longest comes first.
        unsorted_indices: at which place each sequence is.
    """

    data: cresset.Tensor
    batch_sizes: cresset.Tensor
    sorted_indices: "cresset.Tensor | None"
    unsorted_indices: "cresset.Tensor | None"

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # PackedSequence((data, batch_sizes))
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should "
                "be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_data(self, data):
        def moved(indices):
            return None if indices is None else indices.to(data.device)

        return type(self)(data, self.batch_sizes, moved(self.sorted_indices), moved(self.unsorted_indices))

    def to(self, *args, **kwargs):
        """The same sequences on another device or in another dtype."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with_data(data)

    def pin_memory(self):
        """The same sequences in pinned memory."""
        return self._with_data(self.data.pin_memory())

    def cpu(self):
        return self.to("cpu")

    def cuda(self, *args, **kwargs):
        return self._with_data(self.data.cuda(*args, **kwargs))

    def double(self):
        return self.to(dtype=cresset.float64)

    def float(self):
        return self.to(dtype=cresset.float32)

    def half(self):
        return self.to(dtype=cresset.float16)

    def long(self):
        return self.to(dtype=cresset.int64)

    def int(self):
        return self.to(dtype=cresset.int32)

    def short(self):
        return self.to(dtype=cresset.int16)

    def char(self):
        return self.to(dtype=cresset.int8)

    def byte(self):
        return self.to(dtype=cresset.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack sequences that are padded to one length.

    Args:
        input: (L, N, ...), or (N, L, ...) with `batch_first`.
        lengths: the length of each sequence.
        enforce_sorted: refuse sequences that are not sorted by falling length.

    >>> packed = nn.utils.rnn.pack_padded_sequence(cresset.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    lengths = cresset.as_tensor(lengths, dtype=cresset.int64, device="cpu")
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    order = None
    if not enforce_sorted:
        order = lengths.argsort(descending=True)
        counts = lengths[order].tolist()
        order = order.to(input.device)
        input = input.index_select(1, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={input.size(1)})"
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(counts, counts[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not "
            "need ONNX exportability."
        )
    if counts[0] > input.size(0):
        raise RuntimeError(f"Expected sequence length at most {input.size(0)}, got {counts[0]}")
    sizes = [sum(count > step for count in counts) for step in range(counts[0])]
    data = cresset.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, cresset.tensor(sizes), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The sequences padded to one length, and their lengths.

    Args:
        total_length: pad to this length.
    """
    data, batch_sizes, _, unsorted = sequence
    sizes = batch_sizes.tolist()
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    rest = data.shape[1:]
    steps = []
    for piece in data.split(sizes):
        missing = sizes[0] - piece.size(0)
        steps.append(cresset.cat([piece, data.new_full((missing, *rest), padding_value)]) if missing else piece)
    steps.extend(data.new_full((sizes[0], *rest), padding_value) for _ in range(longest - len(sizes)))
    padded = cresset.stack(steps)
    padded = padded.transpose(0, 1) if batch_first else padded
    lengths = cresset.tensor([sum(size > place for size in sizes) for place in range(sizes[0])])
    if unsorted is not None:
        padded, lengths = padded.index_select(0 if batch_first else 1, unsorted), lengths[unsorted.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths as one tensor, the shorter ones padded.

    >>> nn.utils.rnn.pad_sequence([cresset.tensor([1, 2]), cresset.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if isinstance(sequences, cresset.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest, rest = max(s.size(0) for s in sequences), sequences[0].shape[1:]
    rows = []
    for s in sequences:
        gap = s.new_full((longest - s.size(0), *rest), padding_value)
        if gap.size(0) == 0:
            rows.append(s)
        else:
            rows.append(cresset.cat([s, gap] if padding_side == "right" else [gap, s]))
    return cresset.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Copies of the sequences in a padded tensor, each at its own length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        row[: max(0, int(length))].clone(memory_format=cresset.contiguous_format)
        for row, length in zip(padded_sequences, lengths, strict=True)
    ]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack sequences of different lengths."""
    lengths = cresset.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences in a PackedSequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
