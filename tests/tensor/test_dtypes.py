"""Dtypes: promotion, conversion rules, limits, defaults."""

import pytest

import cresset as torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]


@pytest.mark.parametrize("a", ALL, ids=str)
def test_promotion_is_symmetric_and_keeps_the_higher_kind(a):
    for b in ALL:
        both = torch.promote_types(a, b)
        assert both == torch.promote_types(b, a)
        assert both.is_complex == (a.is_complex or b.is_complex)
        assert both.is_complex or both.is_floating_point == (a.is_floating_point or b.is_floating_point)
        assert torch.promote_types(a, a) == a and torch.promote_types(both, a) == both
        assert (torch.ones(1, dtype=a) + torch.ones(1, dtype=b)).dtype == both


def test_promotion_of_neighbors():
    assert torch.promote_types(torch.uint8, torch.int8) == torch.int16
    assert torch.promote_types(torch.float16, torch.bfloat16) == torch.float32
    assert torch.promote_types(torch.int64, torch.float16) == torch.float16
    assert torch.promote_types(torch.float64, torch.complex64) == torch.complex128


@pytest.mark.parametrize(("operand", "number", "expected"), [
    (torch.uint8, 300, torch.uint8), (torch.uint8, 0.5, torch.float32), (torch.float16, 0.5, torch.float16),
    (torch.int64, 1j, torch.complex64),
    (torch.float64, 1j, torch.complex128), (torch.bool, 1, torch.int64), (torch.bool, True, torch.bool),
    (torch.int8, True, torch.int8),
])  # fmt: skip
def test_a_python_number_decides_only_the_kind(operand, number, expected):
    t = torch.ones(2, dtype=operand)
    assert torch.result_type(t, number) == (t + number).dtype == (number + t).dtype == expected


def test_a_tensor_without_dimensions_decides_only_the_kind():
    wide, narrow = torch.tensor(1.0, dtype=torch.float64), torch.ones(2, dtype=torch.float32)
    assert (wide + narrow).dtype == torch.float32 and (wide + torch.tensor(1.0)).dtype == torch.float64
    assert (torch.ones(2, dtype=torch.int8) + wide).dtype == torch.float64


def test_can_cast_does_not_lower_the_kind():
    assert torch.can_cast(torch.float64, torch.float16) and torch.can_cast(torch.int64, torch.int8)
    assert (
        not torch.can_cast(torch.float32, torch.int64)
        and not torch.can_cast(torch.complex64, torch.float64)
        and not torch.can_cast(torch.int8, torch.bool)
    )


def test_in_place_keeps_the_dtype():
    t = torch.ones(2, dtype=torch.float32)
    assert t.add_(torch.ones(2, dtype=torch.float64)).dtype == torch.float32
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int32).mul_(0.5)


def test_limits():
    assert (
        torch.finfo(torch.float32).eps == 2**-23
        and torch.finfo(torch.float16).max == 65504
        and torch.finfo(torch.complex128).bits == 64
    )
    assert (torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max, torch.iinfo(torch.uint64).max) == (
        -128,
        127,
        2**64 - 1,
    )
    for wrong in (lambda: torch.finfo(torch.int8), lambda: torch.iinfo(torch.float32), lambda: torch.iinfo(torch.bool)):
        with pytest.raises(TypeError):
            wrong()


def test_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype == torch.zeros(1).dtype == (torch.arange(2) / 2).dtype == torch.float64
        assert torch.tensor(1j).dtype == torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int32)


def test_attributes_of_dtypes():
    assert torch.float is torch.float32 and torch.long is torch.int64 and repr(torch.half) == "torch.float16"
    assert (
        torch.complex64.itemsize == 8
        and torch.complex64.to_real() == torch.float32
        and torch.float64.to_complex() == torch.complex128
    )
    assert not torch.uint8.is_signed and torch.bfloat16.is_floating_point


def test_sizes_are_tuples():
    size = torch.zeros(2, 3).shape
    assert size == (2, 3) and isinstance(size, tuple) and repr(size) == "torch.Size([2, 3])" and size.numel() == 6
    assert type(size[:1]) is torch.Size and type(size + (1,)) is torch.Size and hash(size) == hash((2, 3))


def test_only_floating_types_have_a_complex_one():
    assert torch.float16.to_complex() is torch.complex32 and torch.complex64.to_complex() is torch.complex64
    for dtype in (torch.int64, torch.bool, torch.float8_e5m2):
        with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
            dtype.to_complex()
