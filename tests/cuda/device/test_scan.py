"""Cumulative sums, products, extremes and log-sum-exps on CUDA give what the CPU gives."""

import math

import pytest

import cresset

TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "int64": 0}
PLACES = [
    ((), 0),
    ((7,), 0),
    ((3, 1500), 1),
    ((70, 5), 0),
    ((2, 9, 4), 1),
    ((1, 20000), 1),
    ((200, 3), 0),
    ((2, 3), 0),
    ((0, 3), 0),
    ((16400, 2), 1),
]


def numbers(shape, dtype):
    x = 3 * cresset.randn(shape, generator=cresset.Generator().manual_seed(1))
    return x.to(getattr(cresset, dtype))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "dim"), PLACES)
def test_along_any_dim(dtype, shape, dim):
    x, tolerance = numbers(shape, dtype), TOLERANCE[dtype]
    near_one = x if tolerance == 0 else x * 0.01 + 1
    pairs = [(x.cumsum(dim), x.cuda().cumsum(dim)), (near_one.cumprod(dim), near_one.cuda().cumprod(dim))]
    pairs += zip(x.cummax(dim), x.cuda().cummax(dim), strict=True)
    pairs += zip(x.cummin(dim), x.cuda().cummin(dim), strict=True)
    if tolerance:
        pairs.append((x.logcumsumexp(dim), x.cuda().logcumsumexp(dim)))
    for want, got in pairs:
        assert got.dtype == want.dtype
        cresset.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)


def test_nan_wins_and_the_last_of_equal_values_counts():
    x = cresset.tensor([1.0, 3.0, 3.0, math.nan, 5.0, math.nan, 2.0], device="cuda")
    values, indices = x.cummax(0)
    assert indices.tolist() == [0, 1, 2, 3, 3, 5, 5]
    assert values[:3].tolist() == [1, 3, 3] and all(math.isnan(v) for v in values[3:].tolist())


def test_infinities():
    x = cresset.tensor([-math.inf, -math.inf, 0.0, math.inf, 1.0])
    cresset.testing.assert_close(x.cuda().logcumsumexp(0).cpu(), x.logcumsumexp(0))


def test_complex_numbers_other_dtypes_and_in_place():
    x = cresset.complex(numbers((4, 3), "float32"), numbers((4, 3), "float32"))
    cresset.testing.assert_close(x.cuda().cumsum(0).cpu(), x.cumsum(0))
    cresset.testing.assert_close(x.cuda().cumprod(1).cpu(), x.cumprod(1))
    ones = cresset.ones(2, 3, dtype=cresset.int32, device="cuda")
    assert ones.cumsum(1).dtype == cresset.int64 and ones.cumsum(1, dtype=cresset.float32).tolist() == [[1, 2, 3]] * 2
    ones.cumsum_(0)
    assert ones.tolist() == [[1] * 3, [2] * 3]


def test_gradients():
    for f in (lambda t: t.cumsum(1), lambda t: t.cummax(0)[0], lambda t: t.logcumsumexp(1)):
        grads = []
        for device in ("cpu", "cuda"):
            x = numbers((4, 5), "float32").to(device).requires_grad_()
            f(x).pow(2).sum().backward()
            grads.append(x.grad.cpu())
        cresset.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


def test_a_row_of_more_than_one_group_of_tiles():
    x = numbers((600_001,), "float32")
    assert cresset.equal((x * 100).long().cuda().cumsum(0).cpu(), (x * 100).long().cumsum(0))
    sums = [x.cuda().cumsum(0).cpu() for _ in range(2)]
    cresset.testing.assert_close(sums[0], x.double().cumsum(0).float())
    assert cresset.equal(*sums)


def test_long_rows_are_scanned_tile_by_tile():
    x = numbers((2, 70001), "float32")
    for name in ("cumsum", "logcumsumexp"):
        cresset.testing.assert_close(getattr(x.cuda(), name)(1).cpu(), getattr(x.double(), name)(1).float())
    for name in ("cummax", "cummin"):
        for got, expected in zip(getattr(x.cuda(), name)(1), getattr(x, name)(1), strict=True):
            assert cresset.equal(got.cpu(), expected)


def test_long_rows_keep_denormal_numbers_infinities_and_nan():
    x = numbers((1, 100_000), "float32")
    x[0, :40] = 1e-42
    x[0, 70_000], x[0, 90_000] = math.inf, math.nan
    expected = x.double().cumsum(1).float()
    cresset.testing.assert_close(x.cuda().cumsum(1).cpu(), expected, equal_nan=True)
    for dtype in ("bfloat16", "float16"):
        half = x.to(getattr(cresset, dtype))
        got, expected = half.cuda().cumsum(1).cpu(), half.double().cumsum(1).to(half.dtype)
        assert cresset.equal(got[:, :70_000], expected[:, :70_000]) and got[0, 70_000] == math.inf
    tiny = cresset.full((40_000,), 1e-42)
    cresset.testing.assert_close(tiny.cuda().cumsum(0).cpu(), tiny.double().cumsum(0).float(), rtol=1e-6, atol=0)
