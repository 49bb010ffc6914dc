"""nn.functional of quantized tensors: the scale is that of the input where no other is asked for."""

import warnings

import cresset
from cresset.nn import functional

from ...operators import activation, convolution
from ...operators import linear as linear_operators

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d",
    "conv3d", "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d",
    "max_pool2d", "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _needs_quantized(name, input):
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _as_it_is(name):
    """A function of nn.functional that quantized tensors have rules for."""
    apply = getattr(functional, name)

    def function(input, *args, **kwargs):
        _needs_quantized(name, input)
        return apply(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`nn.functional.{name}` of a quantized tensor, in its scale."
    return function


adaptive_avg_pool2d, adaptive_avg_pool3d = _as_it_is("adaptive_avg_pool2d"), _as_it_is("adaptive_avg_pool3d")
avg_pool2d, avg_pool3d = _as_it_is("avg_pool2d"), _as_it_is("avg_pool3d")
interpolate, hardsigmoid = _as_it_is("interpolate"), _as_it_is("hardsigmoid")


def _pool(rank):
    name = f"max_pool{rank}d"
    largest = getattr(functional, name)

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if return_indices:
            raise NotImplementedError("return_indices is not yet implemented!")
        _needs_quantized(name, input)
        return largest(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"`nn.functional.{name}` of a quantized tensor, in its scale."
    return pool


max_pool1d, max_pool2d = _pool(1), _pool(2)


def _result(input, scale, zero_point):
    """The scale and the zero point of a result; those of the input where they are None."""
    return input.q_scale() if scale is None else scale, input.q_zero_point() if zero_point is None else zero_point


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """input @ weight.T + bias by integers, of a quantized weight."""
    _needs_quantized("linear", input)
    packed = linear_operators.PackedLinear(weight, bias)
    return linear_operators.requantized_linear(input, packed, *_result(input, scale, zero_point), False)


def _each(value, rank):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


def _convolution(rank):
    name = f"conv{rank}d"

    def convolve(
        input, weight, bias, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros", scale=1.0, zero_point=0,
        dtype=cresset.quint8,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if dtype != cresset.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype != cresset.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        _needs_quantized(name, input)
        if input.dim() != rank + 2:
            raise ValueError(f"Input shape must be `{['(N, C, L)', '(N, C, H, W)', '(N, C, D, H, W)'][rank - 1]}`!")
        sizes = (_each(stride, rank), _each(padding, rank), _each(dilation, rank))
        packed = convolution.PackedConvolution(weight, bias, *sizes, groups)
        return convolution.convolved(name, input, packed, scale, zero_point)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"A {rank}-D convolution of a quantized tensor by a quantized weight, by integers."
    return convolve


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def celu(input, scale, zero_point, alpha=1.0):
    """`nn.functional.celu` of a quantized tensor, in another scale."""
    _needs_quantized("celu", input)
    return activation.celu(input, scale, zero_point, alpha)


def elu(input, scale, zero_point, alpha=1.0):
    """`nn.functional.elu` of a quantized tensor, in another scale."""
    _needs_quantized("elu", input)
    return activation.elu(input, scale, zero_point, alpha)


def hardswish(input, scale, zero_point):
    """`nn.functional.hardswish` of a quantized tensor, in another scale."""
    _needs_quantized("hardswish", input)
    return activation.hardswish(input, scale, zero_point)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """`nn.functional.leaky_relu` of a quantized tensor, in another scale if it is given."""
    _needs_quantized("leaky_relu", input)
    result = activation.leaky_relu(input, negative_slope, False, *_result(input, scale, zero_point))
    if not inplace:
        return result
    input._become(result)
    return input


def threshold(input, threshold, value):
    """`nn.functional.threshold` of a quantized tensor, in its scale."""
    _needs_quantized("threshold", input)
    return activation.threshold(input, threshold, value)


def clamp(input, min_, max_):
    """The elements between two numbers, in the scale of the input."""
    _needs_quantized("clamp", input)
    return activation.clamp(input, min_, max_)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """The elements between two numbers, in the scale of the input."""
    _needs_quantized("hardtanh", input)
    result = activation.clamp(input, min_val, max_val)
    if not inplace:
        return result
    input._become(result)
    return input


def _older(name):
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate`, under its older name."""
    _older("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode "bilinear" and aligned corners."""
    _older("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with mode "nearest"."""
    _older("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")
