"""Pointwise operators on whole numbers, bool and the half types, beside PyTorch."""

import itertools

import pytest

import cresset

torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
VALUES = [float("inf"), float("-inf"), float("nan"), 0.0, -2.5, 3.0]


def operand(lib, dtype):
    floating = dtype.startswith(("float", "bfloat", "complex"))
    return lib.tensor(VALUES if floating else [0, 1, 2, 3, 1, 0]).to(getattr(lib, dtype))


def outcome(lib, program, *dtypes):
    """(dtype, values as text), or the class of the error."""
    try:
        result = program(lib, *(operand(lib, dtype) for dtype in dtypes))
    except Exception as error:
        return type(error).__name__
    wide = result.to(lib.complex128) if result.is_complex() else result.double()
    return str(result.dtype), [str(complex(v)) for v in wide.tolist()]


UNARY = {
    "square": lambda lib, x: lib.square(x), "** 2": lambda lib, x: x**2, "** 2.0": lambda lib, x: x**2.0,
    "pow 2": lambda lib, x: lib.pow(x, 2),
    "nan_to_num": lambda lib, x: lib.nan_to_num(x), "nan_to_num with": lambda lib, x: lib.nan_to_num(x, 1.0, 2.0, -3.0),
    "abs": lambda lib, x: lib.abs(x),
    "in place": lambda lib, x: x.pow_(2), "square_": lambda lib, x: x.square_(),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", list(UNARY.values()), ids=list(UNARY))
def test_of_one_tensor(program, dtype):
    if dtype == "complex64":
        dtype_values = [1 + 2j, 0.5 - 1j]  # the products of infinities are not specified
        ours, theirs = (program(lib, lib.tensor(dtype_values)).tolist() for lib in (cresset, torch))
        assert ours == pytest.approx(theirs, rel=1e-6)
        return
    assert outcome(cresset, program, dtype) == outcome(torch, program, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_angle(dtype):
    ours, theirs = (outcome(lib, lambda lib, x: lib.angle(x), dtype) for lib in (cresset, torch))
    assert ours[0] == theirs[0]
    if dtype != "complex64":
        assert ours == theirs


DIVISIONS = {
    "//": lambda lib, a, b: a // b, "remainder": lambda lib, a, b: lib.remainder(a, b), "fmod": lambda lib, a,
    b: lib.fmod(a, b),
    "trunc": lambda lib, a, b: lib.div(a, b, rounding_mode="trunc"), "by 0": lambda lib, a, b: a // 0,
    "by 2": lambda lib, a, b: a // 2,
    "by one": lambda lib, a, b: lib.fmod(a, lib.ones_like(b)), "of nothing": lambda lib, a, b: lib.fmod(a[:0], 0),
}  # fmt: skip


@pytest.mark.parametrize(("first", "second"), list(itertools.product(["uint8", "int8", "int64", "float32"], repeat=2)))
@pytest.mark.parametrize("program", list(DIVISIONS.values()), ids=list(DIVISIONS))
def test_division(program, first, second):
    ours, theirs = (outcome(lib, program, first, second) for lib in (cresset, torch))
    assert ours == theirs


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("in_place", [False, True])
def test_hardtanh_gives_no_gradient_beyond_bounds_that_half_precision_rounds(dtype, in_place):
    def gradient(lib):
        x = lib.tensor([-2.0, -0.3, 0.1, 0.7, 1.0, 3.0], dtype=getattr(lib, dtype), requires_grad=True)
        lib.nn.functional.hardtanh(x * 1, -0.3, 0.7, inplace=in_place).sum().backward()
        return x.grad.tolist()

    ours = gradient(cresset)
    assert ours == gradient(torch)
    assert ours[0] == ours[-1] == 0
