"""Products of 8-bit floats beside PyTorch's: the same bits go in, the same numbers come out."""

import pytest

import cresset

torch = pytest.importorskip("torch")


def both(t):
    """PyTorch's matrix of 8-bit floats, and ours with the same bytes."""
    return t, cresset.from_numpy(t.view(torch.uint8).numpy()).view(getattr(cresset, str(t.dtype)[6:]))


@pytest.mark.parametrize("types", [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn")])
@pytest.mark.parametrize("out", [None, "float32", "bfloat16"])
@pytest.mark.parametrize("by_row", [False, True])
def test_products(types, out, by_row):
    torch.manual_seed(0)
    a, ours_a = both(torch.randn(16, 32).to(getattr(torch, types[0])))
    b, ours_b = both(torch.randn(24, 32).to(getattr(torch, types[1])))
    scales = (torch.rand(16, 1), torch.rand(1, 24)) if by_row else (torch.tensor(2.0), torch.tensor(0.3))
    wanted = {"out_dtype": getattr(torch, out)} if out else {}
    expected = torch._scaled_mm(a, b.t(), *scales, **wanted)
    wanted = {"out_dtype": getattr(cresset, out)} if out else {}
    result = cresset._scaled_mm(ours_a, ours_b.t(), *(cresset.from_numpy(s.numpy()) for s in scales), **wanted)
    assert str(result.dtype) == str(expected.dtype)
    relative = {None: 0.13, "float32": 1e-6, "bfloat16": 1e-2}[out]
    torch.testing.assert_close(torch.from_numpy(result.float().numpy()), expected.float(), rtol=relative, atol=1e-5)


@pytest.mark.parametrize("scale", [(3,), (16, 2)])
def test_scales_that_do_not_fit(scale):
    a = torch.zeros(16, 32).to(torch.float8_e4m3fn)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a, a.t(), torch.ones(scale), torch.tensor(1.0))
    ours = cresset.zeros(16, 32).to(cresset.float8_e4m3fn)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        cresset._scaled_mm(ours, ours.t(), cresset.ones(scale), cresset.tensor(1.0))


ONE, ROWS, COLUMNS = [1.0], [[0.5]] * 16, [[2.0] * 24]


@pytest.mark.parametrize(
    "call",
    [
        (ONE, [0], [0], ONE, [0], [0], None, "float32"),
        (ROWS, [1], [], COLUMNS, [1], [], [1.0] * 24, "float32"),
        (ROWS, [1], [0], COLUMNS, [1], [0], None, None),
        (ONE, [0], [0], ONE, [0], [0], None, "bfloat16", [1, 0]),
        (ROWS, [0], [0], COLUMNS, [0], [0], None, "float32"),
        (ROWS, [2], [0], COLUMNS, [2], [0], None, "float32"),
        (ONE, [1], [0], ONE, [0], [0], None, "float32"),
        (ONE, [0], [1], ONE, [0], [1], None, "float32"),
        (ONE, [0], [0], ONE, [0], [0], None, "float32", [0]),
    ],
    ids=str,
)
def test_lists_of_scales(call):
    torch.manual_seed(0)
    results = []
    for lib, a, b in zip(
        (torch, cresset),
        both(torch.randn(16, 32).to(torch.float8_e4m3fn)),
        both(torch.randn(24, 32).to(torch.float8_e4m3fn)),
    ):
        scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out, *rest = call
        scale_a, scale_b = lib.tensor(scale_a), lib.tensor(scale_b)
        bias, out = bias and lib.tensor(bias), out and getattr(lib, out)
        try:
            result = lib._scaled_mm_v2(
                a, b.t(), [scale_a], recipe_a, swizzle_a, [scale_b], recipe_b, swizzle_b, bias, out, *rest
            )
            results.append((str(result.dtype), result.float()))
        except Exception as error:
            results.append((type(error), None))
    (expected_kind, expected), (kind, result) = results
    assert kind == expected_kind
    if expected is not None:
        torch.testing.assert_close(
            torch.from_numpy(result.numpy()), expected, rtol=0.13 if call[7] is None else 1e-2, atol=1e-5
        )
