"""Products with weights of 8 and 4 bits beside PyTorch's, and what both refuse."""

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

import cresset  # noqa: E402


def both(array, dtype):
    return torch.tensor(array).to(getattr(torch, dtype)), cresset.tensor(array).to(getattr(cresset, dtype))


@pytest.mark.parametrize("dtype, close", [("float32", 1e-5), ("bfloat16", 1e-2), ("float16", 2e-3)])
@pytest.mark.parametrize("rows", [1, 4, 33])
def test_products(rows, dtype, close):
    random = np.random.default_rng(rows)
    x, mine = both(random.standard_normal((rows, 128)).astype("float32"), dtype)
    scales, own_scales = both(random.random(32).astype("float32"), dtype)
    weights, own_weights = both(random.integers(-128, 128, (32, 128)), "int8")
    theirs, ours = (torch._weight_int8pack_mm(x, weights, scales),
                    cresset._weight_int8pack_mm(mine, own_weights, own_scales))  # fmt: skip
    pairs = [(theirs, ours)]
    numbers, own_numbers = both(random.integers(0, 16, (32, 128)), "int32")
    packed, own_packed = (
        lib._convert_weight_to_int4pack_for_cpu(n, 2) for lib, n in ((torch, numbers), (cresset, own_numbers))
    )
    assert packed.shape == own_packed.shape and str(packed.dtype) == str(own_packed.dtype)
    for group in (32, 64, 128):
        zeros, own_zeros = both(random.random((128 // group, 32, 2)).astype("float32"), dtype)
        pairs.append((torch._weight_int4pack_mm_for_cpu(x, packed, group, zeros),
                      cresset._weight_int4pack_mm_for_cpu(mine, own_packed, group, own_zeros)))  # fmt: skip
    for theirs, ours in pairs:
        assert str(theirs.dtype) == str(ours.dtype)
        theirs, ours = theirs.float().numpy(), ours.float().numpy()
        assert np.abs(theirs - ours).max() <= close * np.abs(theirs).max()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 8), t.ones(4)),
        lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 9, dtype=t.int8), t.ones(4)),
        lambda t: t._weight_int8pack_mm(t.ones(2, 8), t.ones(4, 8, dtype=t.int8), t.ones(3)),
        lambda t: t._convert_weight_to_int4pack_for_cpu(t.ones(16, 32, dtype=t.int64), 2),
        lambda t: t._convert_weight_to_int4pack_for_cpu(t.ones(15, 32, dtype=t.int32), 2),
    ],
)
def test_refusals(call):
    with pytest.raises(RuntimeError) as theirs:
        call(torch)
    with pytest.raises(RuntimeError) as ours:
        call(cresset)
    assert str(theirs.value).partition(" : ")[2].rstrip(".") in str(ours.value)
