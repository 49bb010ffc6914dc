"""Places in sorted sequences and counts of elements on a CUDA device: what the CPU gives."""

import math

import pytest
from agreeing import agree

import cresset as torch


def test_searchsorted():
    sequence, x = (
        torch.tensor([[1.0, 3.0, 5.0, math.nan], [2.0, 2.0, 4.0, 9.0]]),
        torch.tensor([[0.0, 3.0, math.nan], [2.0, 9.5, 4.0]]),
    )
    agree(
        lambda s, x: [
            torch.searchsorted(s, x),
            torch.searchsorted(s, x, right=True),
            torch.searchsorted(s[1], x, out_int32=True),
            torch.searchsorted(s[1], 4),
        ],
        sequence,
        x,
    )
    agree(
        lambda s, x: [torch.searchsorted(s.long(), x), torch.searchsorted(s.half(), x.half(), side="right")],
        sequence.nan_to_num(7),
        x.nan_to_num(7),
    )
    agree(
        lambda s, x: [torch.searchsorted(s.flip(1), x, sorter=torch.arange(3, -1, -1, device=x.device).expand(2, 4))],
        sequence[1:].repeat(2, 1),
        x,
    )
    agree(
        lambda s, x: [
            torch.bucketize(x, s[1]),
            torch.bucketize(x, s[1], right=True),
            torch.bucketize(3.0, s[1]),
            torch.searchsorted(s[1, :0], x),
        ],
        sequence,
        x,
    )
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        torch.searchsorted(
            torch.ones(2, device="cuda"), torch.ones(1, device="cuda"), sorter=torch.tensor([0, 2], device="cuda")
        )


def test_isin():
    agree(lambda x: [torch.isin(x, torch.arange(0, 60, 3, device=x.device)), torch.isin(x, x[:2])], torch.arange(40))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.int32])
def test_bincount(dtype):
    x = torch.tensor([3, 1, 3, 0, 7, 3]).to(dtype)
    weights = torch.arange(6.0)
    agree(
        lambda x, w: [
            torch.bincount(x),
            torch.bincount(x, minlength=12),
            torch.bincount(x, w),
            torch.bincount(x, w.long()),
            torch.bincount(x[:0], minlength=2),
        ],
        x,
        weights,
    )
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([2, -1], device="cuda"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_histc(dtype):
    x = torch.linspace(-3, 5, 101).to(dtype)
    agree(
        lambda x: [
            torch.histc(x, 7),
            torch.histc(x, 5, -1, 2),
            torch.histc(x[:1], 3),
            torch.histc(x[:0], 3),
            torch.histc(-x, 4),
        ],
        x,
    )
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(torch.tensor([1.0, math.nan], device="cuda"))


def test_repeat_interleave():
    x, repeats = torch.arange(6.0).reshape(3, 2), torch.tensor([2, 0, 3])
    agree(
        lambda x, r: [
            x.repeat_interleave(r, 0),
            x.repeat_interleave(2),
            x.repeat_interleave(r.int(), 0),
            x.repeat_interleave(r, 0, output_size=5),
        ],
        x,
        repeats,
    )
