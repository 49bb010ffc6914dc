"""Sums, products and joins of quantized tensors: the numbers they stand for in float32, rounded as operators round."""

import cresset
from cresset.tensors.quantized import fused_numbers, held_by, quantize_per_tensor, quantized, rounded

from . import needs_quantized, operator

_BINARY = "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc"


def _pair(who, a, b):
    needs_quantized(who, a, b)
    if a.dtype != b.dtype:
        raise RuntimeError(f"quantized::{who}: both operands must have one dtype, got {a.dtype} and {b.dtype}")
    return a.dequantize(), b.dequantize()


def _terms(who, a, b):
    _pair(who, a, b)
    return fused_numbers(a), fused_numbers(b)


@operator("add" + _BINARY)
def add(a, b, scale, zero_point):
    x, y = _terms("add", a, b)
    return rounded(x + y, scale, zero_point, a.dtype)


@operator("add_relu" + _BINARY)
def add_relu(a, b, scale, zero_point):
    x, y = _terms("add_relu", a, b)
    return rounded((x + y).relu(), scale, zero_point, a.dtype)


@operator("mul" + _BINARY)
def mul(a, b, scale, zero_point):
    x, y = _pair("mul", a, b)
    return rounded(x * y, scale, zero_point, a.dtype)


@operator("mul_relu" + _BINARY)
def mul_relu(a, b, scale, zero_point):
    x, y = _pair("mul_relu", a, b)
    return rounded((x * y).relu(), scale, zero_point, a.dtype)


@operator("matmul" + _BINARY)
def matmul(a, b, scale, zero_point):
    x, y = _pair("matmul", a, b)
    return rounded(x @ y, scale, zero_point, a.dtype)


@operator("add.Scalar(Tensor qa, Scalar b) -> Tensor qc", "add_scalar(Tensor qa, Scalar b) -> Tensor qc")
def add_scalar(a, number):
    """A number is added by moving the zero point; where that would leave the integers, by a wider scale as well."""
    needs_quantized("add_scalar", a)
    _, low, high = held_by(a.dtype, "add_scalar")
    scale, zero_point = a.q_scale(), a.q_zero_point()
    moved = zero_point - round(float(number) / scale)
    if low <= moved <= high:
        return quantized(a.int_repr(), a.dtype, scale, moved)
    # the old integers from low to high stand for those from low - moved to high - moved, of which zero is no part
    least, greatest = (low, moved) if moved > high else (moved, high)
    wide = (greatest - least) / (high - low) * scale
    offset, zero = (low - moved) if moved > high else (high - moved), high if moved > high else low
    factor = cresset.tensor((high - low) / (greatest - least), dtype=cresset.float32)
    shifted = a._integers.float() - (low if moved > high else high) + offset
    integers = (cresset.round(shifted * factor) + zero).clamp(low, high)
    return quantized(integers.to(a._integers.dtype), a.dtype, wide, zero)


@operator("mul.Scalar(Tensor qa, Scalar b) -> Tensor qc", "mul_scalar(Tensor qa, Scalar b) -> Tensor qc")
def mul_scalar(a, number):
    """A number scales the scale; a negative one turns the integers round."""
    needs_quantized("mul_scalar", a)
    _, low, high = held_by(a.dtype, "mul_scalar")
    if number > 0:
        return quantized(a.int_repr(), a.dtype, a.q_scale() * number, a.q_zero_point())
    if number == 0:
        return quantized(cresset.zeros_like(a._integers), a.dtype, 1.0, 0)
    turned = (low + high) - a._integers.int()
    return quantized(turned.to(a._integers.dtype), a.dtype, a.q_scale() * abs(number), low + high - a.q_zero_point())


@operator("add_relu.Scalar(Tensor qa, Scalar b) -> Tensor qc", "add_scalar_relu(Tensor qa, Scalar b) -> Tensor qc")
def add_scalar_relu(a, number):
    return add_scalar(a, number).relu()


@operator("mul_relu.Scalar(Tensor qa, Scalar b) -> Tensor qc", "mul_scalar_relu(Tensor qa, Scalar b) -> Tensor qc")
def mul_scalar_relu(a, number):
    return mul_scalar(a, number).relu()


@operator("cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")
def cat(tensors, dim, scale, zero_point):
    needs_quantized("cat", *tensors)
    first = tensors[0]
    scale = first.q_scale() if scale is None else scale
    zero_point = first.q_zero_point() if zero_point is None else zero_point
    same = [t for t in tensors if (t.q_scale(), t.q_zero_point()) == (scale, zero_point)]
    if len(same) == len(tensors):
        return quantized(cresset.cat([t._integers for t in tensors], dim), first.dtype, float(scale), int(zero_point))
    joined = cresset.cat([t.dequantize() for t in tensors], dim)
    return quantize_per_tensor(joined, scale, zero_point, first.dtype)


@operator("cat_relu(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")
def cat_relu(tensors, dim, scale, zero_point):
    return cat(tensors, dim, scale, zero_point).relu()
