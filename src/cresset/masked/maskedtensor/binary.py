"""Operators of two tensors, element by element, of which one or both are masked. Two masks have to be the same."""

import cresset

from ...ops import aten_table
from .core import _masks_match, _same_places, is_masked_tensor, made_of, recorded, with_recorded

BINARY_NAMES = [
    "add", "atan2", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    "div", "divide", "floor_divide", "fmod", "logaddexp", "logaddexp2", "mul", "multiply", "nextafter", "remainder",
    "sub", "subtract", "true_divide", "eq", "ne", "le", "ge", "greater", "greater_equal", "gt", "less_equal", "lt",
    "less", "maximum", "minimum", "fmax", "fmin", "not_equal",
]  # fmt: skip
_ONLY_NEW = {"logaddexp", "logaddexp2", "fmin", "minimum", "maximum", "fmax"}
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _ONLY_NEW]

NATIVE_BINARY_FNS = [aten_table.packet(name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [aten_table.packet(name) for name in INPLACE_BINARY_NAMES]


def elementwise(func, input, other, *args, **kwargs):
    """`func` of the elements of both; the mask is that of the masked one."""
    like, operands = _operands(input, other)
    result = func(*operands, *args, **kwargs)
    data, mask = like._masked_data, like._masked_mask
    if data.layout is not cresset.strided:
        return made_of(with_recorded(data, result), mask.clone())
    return made_of(result, mask.expand_as(result).clone())


def in_place(func, input, other, *args, **kwargs):
    """`func`, which writes to its first argument, of the elements of both."""
    if not is_masked_tensor(input):
        raise TypeError(
            f"{func}: a plain tensor cannot be changed in place by a MaskedTensor; call to_tensor(value) first"
        )
    _, operands = _operands(input, other)
    func(*operands, *args, **kwargs)
    return input


def _operands(input, other):
    """(the masked tensor whose mask counts, the plain operands)."""
    like = input if is_masked_tensor(input) else other
    for value in (input, other):
        if cresset.is_tensor(value) and value.dim() and value.layout != like.layout:
            raise TypeError(
                f"MaskedTensor binary ops expect operands of one layout. Got {input.layout} and {other.layout}"
            )
    if like.is_sparse and cresset.is_tensor(input) and cresset.is_tensor(other) and input.dim() and other.dim():
        a, b = (v._masked_data if is_masked_tensor(v) else v for v in (input, other))
        if a.shape != b.shape:
            raise ValueError(
                f"input1 and input2 must have the same size for binary functions. Got {tuple(a.shape)} and "
                f"{tuple(b.shape)}"
            )
        if a._nnz() != b._nnz() or not _same_places(a, b):
            raise ValueError(f"{str(like.layout).removeprefix('torch.')} indices must match")
    if not _masks_match(input, other):
        raise ValueError("Input masks must match. Use where, or to_tensor(value) of both, to say what counts")
    plain = [v._masked_data if is_masked_tensor(v) else v for v in (input, other)]
    return like, [recorded(v) if cresset.is_tensor(v) else v for v in plain]
