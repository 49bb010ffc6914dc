"""Sequences of different lengths: how what they are padded to and cut from lies in memory."""

import pytest

import cresset
from cresset import nn

LENGTHS = cresset.tensor([2, 5, 3])


@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_put_back_in_order_are_contiguous(batch_first):
    """Dropout draws in the order of memory: a layout of its own would be other numbers for the same seed."""
    x = cresset.randn(3, 5, 2) if batch_first else cresset.randn(5, 3, 2)
    packed = nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=batch_first, enforce_sorted=False)
    for first, shape in ((False, (6, 3, 2)), (True, (3, 6, 2))):
        padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=first, total_length=6)
        assert padded.shape == shape and padded.is_contiguous() and lengths.tolist() == LENGTHS.tolist()
        rows = padded if first else padded.transpose(0, 1)
        given = x if batch_first else x.transpose(0, 1)
        for row, whole, length in zip(rows, given, LENGTHS.tolist(), strict=True):
            assert row[:length].equal(whole[:length]) and not row[length:].any()


def test_sorted_sequences_are_a_view_of_steps():
    packed = nn.utils.rnn.pack_padded_sequence(cresset.randn(5, 3, 2), [5, 3, 2])
    padded, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    assert padded.shape == (3, 5, 2) and padded.stride() == (2, 6, 1)


@pytest.mark.parametrize("batch_first", [False, True])
def test_unpadded_sequences_are_copies(batch_first):
    padded = cresset.ones(3, 5, 2) if batch_first else cresset.ones(5, 3, 2)
    rows = nn.utils.rnn.unpad_sequence(padded, LENGTHS, batch_first=batch_first)
    assert [row.shape for row in rows] == [(2, 2), (5, 2), (3, 2)] and all(row.is_contiguous() for row in rows)
    rows[0].zero_()
    assert padded.all()
    assert [len(row) for row in nn.utils.rnn.unpad_sequence(padded, cresset.tensor([0, -1, 9]), batch_first)] == [
        0,
        0,
        5,
    ]
    with pytest.raises(ValueError, match="shorter"):
        nn.utils.rnn.unpad_sequence(padded, cresset.tensor([1, 2]), batch_first=batch_first)
