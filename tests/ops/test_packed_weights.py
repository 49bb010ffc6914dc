"""Products with weights of 8 and 4 bits, on every device: against weights that are widened first."""

import pytest

import cresset

pytestmark = pytest.mark.kernels

CLOSE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}


def check(result, wanted, dtype):
    assert result.dtype == dtype and result.shape == wanted.shape
    scale = wanted.abs().max().clamp_min(1e-6)
    assert ((result.double() - wanted) / scale).abs().max() < CLOSE[str(dtype)[6:]]


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize(
    "rows, columns, k", [(1, 16, 64), (3, 40, 208), (8, 17, 1024), (9, 24, 4112), (40, 24, 96), (2, 3, 7)]
)
def test_eight_bits(rows, columns, k, dtype):
    dtype = getattr(cresset, dtype)
    x, scales = cresset.randn(rows, k).to(dtype), (cresset.rand(columns) + 0.1).to(dtype)
    weights = cresset.randint(-128, 128, (columns, k), dtype=cresset.int8)
    result = cresset._weight_int8pack_mm(x, weights, scales)
    check(result, x.double() @ weights.double().t() * scales.double(), dtype)


def four_bits(columns, k, group, dtype):
    numbers = cresset.randint(0, 16, (columns, k), dtype=cresset.int32)
    scales = cresset.stack([cresset.rand(k // group, columns) + 0.1, cresset.randn(k // group, columns)], 2).to(dtype)
    scale, zero = (part.double().t().repeat_interleave(group, 1) for part in scales.unbind(2))
    return numbers, scales, (numbers.double() - 8) * scale + zero


SIZES = [
    (1, 16, 32, 32), (2, 16, 96, 32), (5, 32, 128, 64), (8, 48, 4096, 128), (9, 16, 1184, 32), (1, 16, 512, 256),
    (33, 16, 192, 64),
]  # fmt: skip


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("rows, columns, k, group", SIZES)
def test_four_bits(rows, columns, k, group, dtype):
    dtype = getattr(cresset, dtype)
    x = cresset.randn(rows, k).to(dtype)
    numbers, scales, wide = four_bits(columns, k, group, dtype)
    wanted = x.double() @ wide.t()
    pairs = (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(cresset.uint8)
    packed = cresset._convert_weight_to_int4pack(pairs, 2)
    assert packed.shape == (columns // 8, k // 32, 32, 1) and packed.dtype == cresset.int32
    check(cresset._weight_int4pack_mm(x, packed, group, scales), wanted, dtype)
    plain = cresset._convert_weight_to_int4pack_for_cpu(numbers, 2)
    assert plain.shape == (columns, k // 2) and plain.dtype == cresset.uint8
    check(cresset._weight_int4pack_mm_for_cpu(x, plain, group, scales), wanted, dtype)
    assert cresset.equal(plain.view(cresset.int32).reshape(-1), packed.reshape(-1))


def test_the_number_of_tiles_decides_about_the_shape_alone():
    pairs = cresset.randint(0, 256, (16, 128), dtype=cresset.uint8)
    two, eight = (cresset._convert_weight_to_int4pack(pairs, tiles) for tiles in (2, 8))
    assert eight.shape == (2, 2, 32, 4) and cresset.equal(two.reshape(-1), eight.reshape(-1))


def test_rows_and_weights_may_lie_anyhow_and_there_may_be_none():
    x, weights = cresset.randn(64, 3).t(), cresset.randint(-9, 9, (64, 16), dtype=cresset.int8).t()
    check(cresset._weight_int8pack_mm(x, weights, cresset.ones(16)), x.double() @ weights.double().t(), cresset.float32)
    for rows, k in ((0, 8), (2, 0)):
        weights = cresset.ones(4, k, dtype=cresset.int8)
        result = cresset._weight_int8pack_mm(cresset.ones(rows, k), weights, cresset.ones(4))
        assert cresset.equal(result, cresset.zeros(rows, 4))


BYTES, NUMBERS = dict(dtype=cresset.int8), dict(dtype=cresset.int32)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 8), t.ones(4)), "expect B to be int8 tensor"),
        (lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 9, **BYTES), t.ones(4)), r"expect B.size\(1\) == 8"),
        (lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 8, **BYTES), t.ones(3)), "1d tensor with size 4"),
        (lambda t: t._convert_weight_to_int4pack_for_cpu(t.ones(16, 32), 2), "expect weight to be kInt"),
        (lambda t: t._convert_weight_to_int4pack_for_cpu(t.ones(15, 32, **NUMBERS), 2), "dividable by 16"),
        (lambda t: t._convert_weight_to_int4pack(t.ones(8, 16, dtype=t.uint8), 3), "innerKTiles must be 2, 4 or 8"),
        (lambda t: t._convert_weight_to_int4pack(t.ones(8, 16, dtype=t.uint8), 4), "columns in 64s"),
        (lambda t: product(t, 48), "qGroupSize to be 32, 64, 128 or 256, got 48"),
        (lambda t: product(t, 64), "K to be dividable by qGroupSize"),
        (lambda t: product(t, 32, t.ones(2, 16, 2)), "3d tensor with sizes"),
        (lambda t: product(t, 32, t.ones(1, 16, 2, dtype=t.float64)), "expect qScaleAndZeros of"),
    ],
)  # fmt: skip
def test_what_they_refuse(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(cresset)


def product(t, group, scales=None):
    packed = t._convert_weight_to_int4pack_for_cpu(t.ones(16, 32, **NUMBERS), 2)
    return t._weight_int4pack_mm_for_cpu(t.ones(1, 32), packed, group, t.ones(1, 16, 2) if scales is None else scales)
