"""Padding: where each new element comes from, and that the way back is the transpose."""

import itertools

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck
from cresset.nn import functional as F

MODES = ["constant", "reflect", "replicate", "circular"]


def places(size, before, after, mode):
    """The old element of each new one, None for the constant: told step by step."""
    whole = list(range(size))
    if mode == "circular":
        kept = whole[max(-before, 0) : size - max(-after, 0)]
        return [kept[i % len(kept)] for i in range(-max(before, 0), len(kept) + max(after, 0))]
    if mode == "constant":
        front, back = [None] * before, [None] * after
    elif mode == "replicate":
        front, back = [0] * before, [size - 1] * after
    else:
        front, back = whole[before:0:-1] if before > 0 else [], whole[::-1][1 : after + 1] if after > 0 else []
    padded = front + whole + back
    return padded[max(-before, 0) : len(padded) - max(-after, 0)]


@pytest.mark.parametrize("mode", MODES)
def test_each_new_element_is_the_old_one_that_is_meant(mode):
    x = cresset.arange(12.0).reshape(1, 3, 4)
    for before, after in itertools.product(range(-2, 4), range(-1, 4)):
        if mode == "circular" and min(before, after) < 0 and before + after + 4 < 2:
            continue
        for dim, amounts in ((2, (before, after)), (1, (0, 0, min(before, 2), min(after, 2)))):
            if dim == 1 and mode != "constant" and 3 + min(before, 0) + min(after, 0) < 1:
                continue
            rows = x if dim == 2 else x[None]
            expected = places(x.shape[dim], amounts[-2], amounts[-1], mode)
            got = F.pad(rows, amounts, mode=mode, value=-1 if mode == "constant" else None)
            got = got if dim == 2 else got[0]
            old = x.movedim(dim, 0)
            for new, place in zip(got.movedim(dim, 0), expected, strict=True):
                wanted = cresset.full_like(old[0], -1) if place is None else old[place]
                assert cresset.equal(new, wanted), (mode, before, after, dim)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_the_way_back_is_the_transpose(mode):
    """<pad(x), y> = <x, back(y)>, exactly, for whole numbers."""
    for pad in [(3, 3), (-1, 2), (2, -2), (1, 3, 2, 1), (1, 0, 0, 2, 1, 1), (-1, 3, 2, -1, 0, 0)]:
        cresset.manual_seed(len(pad))
        x = cresset.randint(-9, 9, (2, 4, 4, 4)).double()
        padded = cresset._pad(x, pad, mode, 0, False)
        y = cresset.randint_like(padded, -9, 9)
        assert (padded * y).sum() == (x * cresset._pad(y, pad, mode, 0, True)).sum()


@pytest.mark.parametrize("mode", MODES)
def test_it_differentiates_twice(mode):
    x = cresset.randn(1, 2, 4, 3, dtype=cresset.float64, requires_grad=True)
    for pad in [(1, 2, 2, 1), (-1, 2, 0, 0)]:
        assert gradcheck(lambda x, pad=pad: F.pad(x, pad, mode=mode), (x,), check_forward_ad=True)
        assert gradgradcheck(lambda x, pad=pad: F.pad(x, pad, mode=mode).square(), (x,))


@pytest.mark.parametrize("mode", MODES)
def test_channels_stay_last(mode):
    plain = cresset.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    last = plain.to(memory_format=cresset.channels_last)
    got = F.pad(last, (1, 2, 2, 1), mode=mode)
    assert got.is_contiguous(memory_format=cresset.channels_last) == (mode != "circular")
    assert cresset.equal(got, F.pad(plain, (1, 2, 2, 1), mode=mode))


def test_a_constant_goes_to_dimensions_far_apart():
    x = cresset.arange(2 * 3 * 2 * 2 * 2.0).reshape(2, 3, 2, 2, 2)
    got = F.pad(x, (1, 0, 0, 0, 0, 0, 2, 1, 0, 3), value=7)
    assert got.shape == (5, 6, 2, 2, 3)
    assert cresset.equal(got[:2, 2:5, :, :, 1:], x)
    assert (got != 7).sum() == (x != 7).sum()


def test_halves_are_summed_in_float_and_rounded_once():
    ones = cresset.ones(1, 1, 300, dtype=cresset.bfloat16) * 1.01
    got = cresset._pad(ones, (299, 0), 2, 0, True)
    assert got.item() == cresset.tensor(float(ones[0, 0, 0]) * 300, dtype=cresset.bfloat16).item()


@pytest.mark.parametrize(("size", "amounts"), [(0, (1, -1)), (3, (2, -4)), (3, (-4, 2)), (3, (-2, -2))])
def test_more_than_there_is_cannot_be_taken_away(size, amounts):
    with pytest.raises(RuntimeError, match="negative padding"):
        F.pad(cresset.ones(size), amounts)


@pytest.mark.parametrize(
    ("shape", "amounts", "padded"), [((0, 5), (1, 1), (0, 7)), ((2, 0, 3, 5), (1, 2, 1, 0), (2, 0, 4, 8))]
)
def test_rows_of_no_channel_go_round(shape, amounts, padded):
    assert tuple(F.pad(cresset.ones(shape), amounts, mode="circular").shape) == padded
    with pytest.raises(RuntimeError, match="non-zero dimensions"):
        F.pad(cresset.ones(shape), amounts, mode="reflect")


def test_nothing_does_not_go_round():
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(cresset.ones(2, 0), (1, 1), mode="circular")
