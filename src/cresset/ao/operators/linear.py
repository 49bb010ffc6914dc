"""Linear maps by integers, with sums in int32.

Note [Requantization]
The sum of (x - x0)(w - w0) stands for a number in units of sx * sw, of which the result has its own, sy: the integer is
round((sum + bias / (sx sw)) * (sx sw / sy)) + y0, each step rounded to float32. That is the order in which PyTorch's
engine for x86 does it; a convolution has another one, see convolution.py.
"""

import cresset
from cresset.tensors.quantized import choose_parameters, extremes, quantize_per_tensor, quantized

from . import needs_quantized, operator


class PackedLinear:
    """What `linear_prepack` makes: a weight and a bias."""

    def __init__(self, weight, bias):
        self.weight, self.bias = weight, bias

    def unpack(self):
        """(weight, bias)."""
        return self.weight, self.bias


def weight_scales(weight):
    """The scale of a weight, or that of each channel, in float32."""
    if weight.qscheme() is cresset.per_tensor_affine:
        return cresset.tensor(weight.q_scale(), dtype=cresset.float32)
    return weight.q_per_channel_scales().float()


def sums(rows, zero_point, weight):
    """The sums over k of (rows[m, k] - zero_point) * (weight[n, k] - its zero point), in int32."""
    product = cresset._native.operators()["quantized_product"](rows, weight._integers.contiguous(), zero_point)
    one = weight.qscheme() is cresset.per_tensor_affine
    zero = weight.q_zero_point() if one else weight.q_per_channel_zero_points().int()
    if zero != 0 if one else bool((zero != 0).any()):
        product = product - (rows.int() - zero_point).sum(1, keepdim=True, dtype=cresset.int32) * zero
    return product


@operator("linear_prepack(Tensor W, Tensor? B=None) -> Packed W_prepack")
def linear_prepack(weight, bias):
    needs_quantized("linear_prepack", weight)
    if weight.dim() != 2:
        raise RuntimeError(f"quantized::linear_prepack: the weight must have 2 dimensions, got {weight.dim()}")
    return PackedLinear(weight, bias)


@operator("linear_prepack_fp16(Tensor W, Tensor? B=None) -> Packed W_prepack")
def linear_prepack_fp16(weight, bias):
    return PackedLinear(weight.detach().half().float(), bias)


@operator(
    "linear_unpack(Packed W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
)
def linear_unpack(packed):
    return packed.unpack()


@operator("linear_unpack_fp16(Packed W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack_fp16(packed):
    return packed.unpack()


def requantized_linear(input, packed, scale, zero_point, relu=False):
    """The integers of a linear map: see Note [Requantization]."""
    weight, bias = packed.unpack()
    rows = input._integers.reshape(-1, input.shape[-1])
    unit = weight_scales(weight) * float32(input.q_scale())
    result = sums(rows, input.q_zero_point(), weight).float()
    if bias is not None:
        result = result + bias.detach() / unit
    integers = cresset.round(result * (unit / float32(scale))) + zero_point
    integers = integers.clamp(zero_point if relu else 0, 255).to(cresset.uint8)
    return quantized(
        integers.reshape(*input.shape[:-1], weight.shape[0]), cresset.quint8, float(scale), int(zero_point)
    )


def float32(number):
    return cresset.tensor(number, dtype=cresset.float32)


@operator("linear(Tensor X, Packed W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")
def linear(input, packed, scale, zero_point):
    needs_quantized("linear", input)
    return requantized_linear(input, packed, scale, zero_point)


@operator("linear_relu(Tensor X, Packed W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")
def linear_relu(input, packed, scale, zero_point):
    needs_quantized("linear_relu", input)
    return requantized_linear(input, packed, scale, zero_point, relu=True)


@operator("linear_dynamic(Tensor X, Packed W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_dynamic(input, packed, reduce_range=False):
    """A linear map in floating point whose input becomes uint8 by its own extremes; with `reduce_range`, 7 bits."""
    weight, bias = packed.unpack()
    if input.dtype != cresset.float32:
        raise RuntimeError(f"quantized::linear_dynamic: expected a float32 tensor, got {input.dtype}")
    scale, zero_point = choose_parameters(*extremes(input), 0, 127 if reduce_range else 255)
    rows = quantize_per_tensor(input.reshape(-1, input.shape[-1]), scale, zero_point, cresset.quint8)._integers
    unit = weight_scales(weight) * float32(scale)
    result = sums(rows, zero_point, weight).float()
    if bias is None:
        result = result * unit
    else:  # a fused multiply-add: products of two floats are exact in double
        result = (result.double() * unit.double() + bias.detach().double()).float()
    return result.reshape(*input.shape[:-1], weight.shape[0])


@operator("linear_relu_dynamic(Tensor X, Packed W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_relu_dynamic(input, packed, reduce_range=False):
    return linear_dynamic(input, packed, reduce_range).relu()


@operator("linear_dynamic_fp16(Tensor X, Packed W_prepack) -> Tensor Y")
def linear_dynamic_fp16(input, packed):
    return cresset.nn.functional.linear(input, packed.weight, packed.bias).detach()


@operator("linear_relu_dynamic_fp16(Tensor X, Packed W_prepack) -> Tensor Y")
def linear_relu_dynamic_fp16(input, packed):
    return linear_dynamic_fp16(input, packed).relu()
