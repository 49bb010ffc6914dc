"""torch.ops.quantized_decomposed: quantization on ordinary integer tensors, whose scales and zero points are arguments.

Graphs of quantized models are written in them, since each is arithmetic that a backend can fuse. An integer is
round(x * (1 / scale)) + zero_point, kept between `quant_min` and `quant_max`.
"""

import cresset
from cresset.library import Library, impl, register_fake

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")

_LIMITS = {
    **{dtype: (cresset.iinfo(dtype).min, cresset.iinfo(dtype).max)
       for dtype in (cresset.uint8, cresset.int8, cresset.uint16, cresset.int16, cresset.int32)},
    cresset.float8_e5m2: (-57344, 57344),
    cresset.float8_e4m3fn: (-448, 448),
}  # fmt: skip
_RANGE = "int quant_min, int quant_max, ScalarType dtype"


def _operator(schema, fake=None, key="CompositeExplicitAutograd"):
    """Make a function an operator of this schema; `fake` gives its shape where its arithmetic asks for elements. With
    the key CompositeImplicitAutograd its arithmetic is differentiated.
    """
    name = schema.partition("(")[0]

    def register(run):
        quantized_decomposed_lib.define(schema)
        impl(quantized_decomposed_lib, name, key)(run)
        if fake is not None:
            register_fake(f"quantized_decomposed::{name}", fake, lib=quantized_decomposed_lib)
        return run

    return register


def _checked(holds, message):
    if not holds:
        raise AssertionError(message)


def _check_range(quant_min, quant_max, dtype):
    if dtype not in _LIMITS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _LIMITS[dtype]
    _checked(
        quant_min >= low, f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}"
    )
    _checked(
        quant_max <= high, f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}"
    )


def _single(input):
    """The input in float32, which half precision is quantized in."""
    input = input.float() if input.dtype in (cresset.float16, cresset.bfloat16) else input
    _checked(
        input.dtype == cresset.float32, f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}"
    )
    return input


def _along(axis, input, *parameters):
    """One number for each place of a dimension, in a shape that meets the input."""
    _checked(axis < input.dim(), f"Expecting axis to be < {input.dim()}")
    shape = [1] * input.dim()
    shape[axis] = -1
    return [None if p is None else p.reshape(shape) for p in parameters]


def _integers(input, scale, zero_point, quant_min, quant_max, dtype):
    return (cresset.round(input * (1.0 / scale)) + zero_point).clamp(quant_min, quant_max).to(dtype)


def _of_dtype(input, dtype):
    _checked(input.dtype == dtype, f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


# ---- one scale for all


@_operator(f"quantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}) -> Tensor")
def quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """Integers of one scale.

    >>> from cresset.ao.quantization.fx import _decomposed
    >>> x = cresset.tensor([-1.0, 0.1, 9.0])
    >>> q = cresset.ops.quantized_decomposed.quantize_per_tensor(x, 0.5, 3, 0, 15, cresset.uint8)
    >>> q, cresset.ops.quantized_decomposed.dequantize_per_tensor(q, 0.5, 3, 0, 15, cresset.uint8)
    (tensor([ 1,  3, 15], dtype=torch.uint8), tensor([-1.,  0.,  6.]))
    """
    input = _single(input)
    _check_range(quant_min, quant_max, dtype)
    return _integers(input, scale, zero_point, quant_min, quant_max, dtype)


@_operator(
    f"dequantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}, *, ScalarType? out_dtype=None) "
    "-> Tensor"
)
def dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """The numbers that integers of one scale stand for, in float32 or `out_dtype`."""
    _of_dtype(input, dtype)
    if dtype not in _LIMITS:
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(out_dtype or cresset.float32) - zero_point) * scale


def _number(name, tensor):
    _checked(tensor.numel() == 1, f"Expecting {name} tensor to be one element, but received : {tensor.numel()}")
    return tensor.item()


def _quantized_alike(input, scale, zero_point, quant_min, quant_max, dtype):
    return cresset.empty_like(_single(input), dtype=dtype)


def _numbers_alike(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    return cresset.empty_like(input, dtype=out_dtype or cresset.float32)


def _with_tensors(overload, limits):
    """The same with the scale and the zero point (and the limits) in tensors of one element."""
    given = f"Tensor input, Tensor scale, Tensor zero_point, {limits}, ScalarType dtype"
    both_limits = overload == "tensor2"

    def numbers(scale, zero_point, quant_min, quant_max):
        if both_limits:
            quant_min, quant_max = _number("quant_min", quant_min), _number("quant_max", quant_max)
        return _number("scale", scale), _number("zero_point", zero_point), quant_min, quant_max

    @_operator(f"quantize_per_tensor.{overload}({given}) -> Tensor", _quantized_alike)
    def quantize(input, scale, zero_point, quant_min, quant_max, dtype):
        return quantize_per_tensor(input, *numbers(scale, zero_point, quant_min, quant_max), dtype)

    @_operator(f"dequantize_per_tensor.{overload}({given}, *, ScalarType? out_dtype=None) -> Tensor", _numbers_alike)
    def dequantize(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
        parameters = numbers(scale, zero_point, quant_min, quant_max)
        return dequantize_per_tensor(input, *parameters, dtype, out_dtype=out_dtype)


_with_tensors("tensor", "int quant_min, int quant_max")
_with_tensors("tensor2", "Tensor quant_min, Tensor quant_max")


def _parameters_alike(input, quant_min, quant_max, eps, dtype):
    return input.new_empty(1, dtype=cresset.float64), input.new_empty(1, dtype=cresset.int64)


def _choose(name, symmetric):
    @_operator(
        f"{name}.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
        _parameters_alike,
    )
    def choose(input, quant_min, quant_max, eps, dtype):
        """The scale (not below `eps`) and the zero point that the extremes of the input and zero ask for."""
        _checked(
            input.dtype in (cresset.float32, cresset.float16, cresset.bfloat16),
            f"Expecting input to have dtype torch.float32/16/b16, but got dtype: {input.dtype}",
        )
        _checked(dtype in _LIMITS, f"Expecting target dtype to be one of {list(_LIMITS)}, but got: {dtype}")
        _checked(quant_min <= 0 <= quant_max, "Used-specified quantization range must include 0.")
        _checked(quant_min < quant_max, "qmin must be less than qmax for user-specified quantization range.")
        least, greatest = (extreme.float().reshape(1) for extreme in input.aminmax())
        least, greatest, steps = least.clamp(max=0.0), greatest.clamp(min=0.0), float(quant_max - quant_min)
        floor = cresset.tensor([eps], dtype=cresset.float32, device=input.device)
        if symmetric:
            scale = (cresset.maximum(-least, greatest) / (steps / 2)).maximum(floor)
            zero_point = cresset.full_like(scale, 128 if dtype == cresset.uint8 else 0)
        else:
            scale = ((greatest - least) / steps).maximum(floor)
            zero_point = (quant_min - cresset.round(least / scale)).clamp(quant_min, quant_max)
        return scale.double(), zero_point.long()


_choose("choose_qparams", False)
_choose("choose_qparams_symmetric", True)


# ---- a scale for each channel


@_operator(f"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {_RANGE}) -> Tensor")
def quantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype):
    """Integers with a scale for each place of dimension `axis`."""
    input = _single(input)
    _check_range(quant_min, quant_max, dtype)
    return _integers(input, *_along(axis, input, scales, zero_points), quant_min, quant_max, dtype)


@_operator(
    f"dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, {_RANGE}, *, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None):
    """The numbers that integers with a scale for each place of dimension `axis` stand for."""
    _of_dtype(input, dtype)
    _check_range(quant_min, quant_max, dtype)
    scales, zero_points = _along(axis, input, scales, zero_points)
    numbers = (input if zero_points is None else input - zero_points) * scales
    return numbers.to(out_dtype or cresset.float32)


@_operator(
    "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) "
    "-> Tensor",
    key="CompositeImplicitAutograd",
)
def fake_quant_per_channel(input, scales, zero_points, axis, quant_min, quant_max):
    """What `quantize_per_channel` and back gives, with the gradient of those within the limits."""
    return cresset.fake_quantize_per_channel_affine(
        _single(input), scales.float(), zero_points.int(), axis, quant_min, quant_max
    )


# ---- a scale for each row


@_operator("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input, dtype):
    """The scale of each row, by its largest magnitude, and zero points of zero."""
    if dtype != cresset.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")  # noqa: TRY002  PyTorch's class
    largest = input.abs().amax(dim=-1, keepdim=True)
    largest = largest.float() if largest.dtype == cresset.float16 else largest
    scales = largest.clamp(min=1e-5) / 127
    return scales, cresset.zeros_like(scales)


def _choose_by_extremes(input, dtype):
    """The scale and the zero point of each row by its extremes and zero; the end with the smaller error is exact."""
    low, high = -128, 127
    least, greatest = input.amin(-1, keepdim=True).clamp(max=0.0), input.amax(-1, keepdim=True).clamp(min=0.0)
    scale = ((greatest - least) / float(high - low)).clamp(min=cresset.finfo(cresset.float32).eps)
    first, last = least / scale, greatest / scale
    zero_point = cresset.where(low + first + high + last > 0, low - first, high - last)
    return scale.double(), zero_point.clamp(low, high).round().long()


for _name in ("choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"):
    _operator(f"{_name}(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", key="CompositeImplicitAutograd")(
        _choose_by_extremes
    )


def _per_token_quant_qparam_dim_check(input, scales, zero_points):
    """That there are as many scales and zero points as rows; its name is PyTorch's, for those who call it."""
    count = input.numel() // input.shape[-1]
    for name, given in (("scales", scales), ("zero_points", zero_points)):
        _checked(given.numel() == count, f"num_tokens: {count} {name}: {tuple(given.shape)}")


@_operator(f"quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}) -> Tensor")
def quantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype):
    """Integers with a scale for each row; the zero point is added before it is rounded."""
    _check_range(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    return (input * (1.0 / scales) + zero_points).round().clamp(quant_min, quant_max).to(dtype)


@_operator(
    f"dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}, ScalarType output_dtype) "
    "-> Tensor"
)
def dequantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype):
    """The numbers that integers with a scale for each row stand for."""
    return ((input - zero_points) * scales).to(output_dtype)


# ---- a scale for each group of a row


def _groups(name, input, scales, group_size):
    """The groups as rows, of a matrix."""
    _checked(group_size > 1, "group_size must be > 1")
    _checked(input.dim() == 2, f"{name} must be 2-dimensional")
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    _checked(input.shape[-1] % group_size == 0, f"{name}.shape[-1] must be divisible by group_size")
    return input.reshape(-1, group_size)


@_operator(
    f"quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}, int group_size) -> Tensor",
    lambda input, scales, zero_points, quant_min, quant_max, dtype, group_size: cresset.empty_like(input, dtype=dtype),
)
def quantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size):
    """Integers with a scale for each `group_size` neighbors of a row."""
    groups = _groups("input", input, scales, group_size)
    _checked(not groups.isnan().any(), "to_quant must not contain NaNs")
    shifted = groups * (1.0 / scales.reshape(-1, 1)) + zero_points.reshape(-1, 1)
    return shifted.round().clamp(quant_min, quant_max).to(dtype).reshape(input.shape)


@_operator(
    f"dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, {_RANGE}, int group_size, "
    "ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size, output_dtype):
    """The numbers that integers with a scale for each group of a row stand for."""
    groups = _groups("w_int8", input, scales, group_size)
    groups = groups if zero_points is None else groups - zero_points.reshape(-1, 1)
    return (groups * scales.reshape(-1, 1)).reshape(input.shape).to(output_dtype)


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input, dtype):
    """The input in another dtype, which no pattern takes with its neighbors."""
    return input.to(dtype, copy=True)
