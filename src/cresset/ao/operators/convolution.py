"""Convolutions by integers. The sums are made in float64, where those of 8-bit integers are exact.

The result is round((sum * (sx sw) + bias) * (1 / sy) + y0), each step rounded to float32: PyTorch's engine for x86 adds
the zero point before it rounds here, and after it for linear maps.
"""

import cresset
from cresset.tensors.quantized import held_by, inverse_of, quantized

from . import needs_quantized, operator
from .linear import float32, weight_scales


class PackedConvolution:
    """What `conv2d_prepack` and its relatives make: a weight, a bias, and how they are applied."""

    def __init__(self, weight, bias, stride, padding, dilation, groups, output_padding=None):
        self.weight, self.bias = weight, bias
        self.stride, self.padding, self.dilation, self.groups = tuple(stride), padding, tuple(dilation), groups
        self.output_padding = None if output_padding is None else tuple(output_padding)  # None: not transposed

    @property
    def transposed(self):
        return self.output_padding is not None

    def unpack(self):
        """(weight, bias)."""
        return self.weight, self.bias


def _centered(weight):
    """The integers of a weight less their zero points."""
    if weight.qscheme() is cresset.per_tensor_affine:
        return weight._integers.double() - weight.q_zero_point()
    shape = [1] * weight.dim()
    shape[weight.q_per_channel_axis()] = -1
    return weight._integers.double() - weight.q_per_channel_zero_points().reshape(shape)


def _sums(numbers, packed):
    stride, padding, dilation, groups = packed.stride, packed.padding, packed.dilation, packed.groups
    dims, weight = len(stride), _centered(packed.weight)
    functional = cresset.nn.functional
    if packed.transposed:
        convolve = getattr(functional, f"conv_transpose{dims}d")
        return convolve(numbers, weight, None, stride, padding, packed.output_padding, groups, dilation)
    return getattr(functional, f"conv{dims}d")(numbers, weight, None, stride, padding, dilation, groups)


def _along_channels(values, dims):
    return values if values.dim() == 0 else values.reshape(-1, *(1,) * dims)


def convolved(who, input, packed, scale, zero_point, relu=False, accumulate=None):
    """The integers of a convolution; `accumulate` is a quantized tensor that is added before rounding."""
    needs_quantized(who, input)
    weight, bias = packed.unpack()
    dims = weight.dim() - 2
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"quantized::{who}: expected {dims + 2} dimensions, got {input.dim()}")
    sums = _sums(input._integers.double() - input.q_zero_point(), packed).float()
    result = sums * _along_channels(weight_scales(weight) * float32(input.q_scale()), dims)
    if bias is not None:
        result = result + _along_channels(bias.detach(), dims)
    if accumulate is not None:
        result = result + accumulate.dequantize()
    _, low, high = held_by(input.dtype, who)
    integers = cresset.round(result * inverse_of(scale) + float(zero_point))
    integers = integers.clamp(max(low, zero_point) if relu else low, high).to(input._integers.dtype)
    return quantized(integers, input.dtype, float(scale), int(zero_point))


def _define(dims):
    """The operators of convolutions over `dims` dimensions."""
    name, turned = f"conv{dims}d", f"conv_transpose{dims}d"
    where = "int[] stride, int[] padding, {}int[] dilation, int groups"

    @operator(f"{name}_prepack(Tensor weight, Tensor? bias, {where.format('')}) -> Packed")
    def prepack(weight, bias, stride, padding, dilation, groups):
        needs_quantized(f"{name}_prepack", weight)
        return PackedConvolution(weight, bias, stride, padding, dilation, groups)

    @operator(f"{turned}_prepack(Tensor weight, Tensor? bias, {where.format('int[] output_padding, ')}) -> Packed")
    def turned_prepack(weight, bias, stride, padding, output_padding, dilation, groups):
        needs_quantized(f"{turned}_prepack", weight)
        return PackedConvolution(weight, bias, stride, padding, dilation, groups, output_padding)

    for each in (name, turned):

        @operator(f"{each}_unpack(Packed packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)")
        def unpack(packed):
            return packed.unpack()

    result = "(Tensor qx, Packed packed_weight, float output_scale, int output_zero_point) -> Tensor"
    for each, relu in ((name, False), (f"{name}_relu", True), (turned, False)):

        @operator(f"{each}{'' if dims == 1 or each == turned else '.new'}{result}")
        def convolve(input, packed, scale, zero_point, each=each, relu=relu):
            return convolved(each, input, packed, scale, zero_point, relu)

    for each in (name, turned):

        @operator(f"{each}_dynamic(Tensor qx, Packed packed_weight, bool reduce_range=False) -> Tensor")
        def convolve_dynamic(input, packed, reduce_range=False, each=each):
            """A convolution whose input becomes uint8 by its own extremes, and whose result is rounded by the same
            scale, as PyTorch's is, whatever its own extremes are.
            """
            if input.dtype != cresset.float32:
                raise RuntimeError(f"quantized::{each}_dynamic: expected a float32 tensor, got {input.dtype}")
            integers = cresset.quantize_per_tensor_dynamic(input, cresset.quint8, reduce_range)
            return convolved(each, integers, packed, integers.q_scale(), integers.q_zero_point()).dequantize()


for _dims in (1, 2, 3):
    _define(_dims)


def _with_sum(name, relu):
    @operator(
        f"{name}(Tensor qx, Tensor qaccum, Packed packed_weight, float output_scale, int output_zero_point) -> Tensor"
    )
    def convolve(input, accumulate, packed, scale, zero_point):
        needs_quantized(name, accumulate)
        return convolved(name, input, packed, scale, zero_point, relu, accumulate)


_with_sum("conv2d_add", False)
_with_sum("conv2d_add_relu", True)
