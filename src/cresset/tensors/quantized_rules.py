"""What calls of operators on quantized tensors do: those that only move elements move the integers."""

import cresset
from cresset import _native

from .quantized import (
    QuantizedTensor,
    along,
    dequantized,
    fused_numbers,
    quantize_per_channel,
    quantize_per_tensor,
    quantized,
    rounded,
    rules,
)


def _moving(name):
    function = _native.operators()[name]

    def apply(input, *args, **kwargs):
        if input._axis is not None and name not in ("clone", "detach", "contiguous"):
            raise RuntimeError(
                f"{name}: not implemented for tensors with one scale for each channel; call dequantize() first"
            )
        return input._with(function(input._integers, *args, **kwargs))

    return apply


for _name in ("clone", "detach", "contiguous", "reshape", "view", "transpose", "permute", "t", "select", "narrow",
    "squeeze", "unsqueeze", "flatten", "index_select",
              "expand", "repeat", "flip", "cpu"):  # fmt: skip
    if _name in _native.operators():
        rules[_name] = _moving(_name)


def _as(input, numbers):
    """Numbers with the scales and zero points of another tensor."""
    if input._axis is None:
        return quantize_per_tensor(numbers, input._scale, input._zero_point, input._dtype)
    return quantize_per_channel(numbers, input._scale, input._zero_point, input._axis, input._dtype)


def _fill_in_place(input, value):
    input._integers.copy_(_as(input, cresset.full(input.shape, float(value)))._integers)
    return input


def _copy_in_place(input, source, non_blocking=False):
    """Numbers are rounded; of a quantized tensor the integers are taken over, with what they stand for."""
    if not isinstance(input, QuantizedTensor):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
            "float Tensor from a quantized Tensor"
        )
    if not isinstance(source, QuantizedTensor):
        input._integers.copy_(_as(input, source.float().expand(input.shape))._integers)
        return input
    if source._dtype != input._dtype:
        raise RuntimeError(f"Quantized Copy only works with the same dtype, got {source._dtype} and {input._dtype}")
    input._integers.copy_(source._integers)
    input._scale, input._zero_point, input._axis = source._scale, source._zero_point, source._axis
    return input


def _unsqueeze(input, dim):
    moved = _native.operators()["unsqueeze"](input._integers, dim)
    axis = input._axis
    if axis is not None and dim % moved.dim() <= axis:
        axis += 1
    return quantized(moved, input._dtype, input._scale, input._zero_point, axis)


def _squeeze(input, dim=None):
    """The dimension that has the scales stays, and keeps them."""
    shape, axis = input.shape, input._axis
    dims = range(input.dim()) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    gone = {one % max(input.dim(), 1) for one in dims if shape and shape[one] == 1}
    if axis in gone:
        raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
    squeezed = _native.operators()["squeeze"](input._integers, *([] if dim is None else [dim]))
    axis = None if axis is None else axis - sum(one < axis for one in gone)
    return quantized(squeezed, input._dtype, input._scale, input._zero_point, axis)


def _empty_like(input, *, memory_format=cresset.preserve_format):
    return input._with(cresset.empty_like(input._integers, memory_format=memory_format))


rules.update(fill_=_fill_in_place, copy_=_copy_in_place, unsqueeze=_unsqueeze, squeeze=_squeeze, empty_like=_empty_like)


def _parted(name):
    function = _native.operators()[name]
    return lambda input, *args, **kwargs: tuple(input._with(p) for p in function(input._integers, *args, **kwargs))


for _name in ("chunk", "split", "unbind"):
    rules[_name] = _parted(_name)


def _ordered(name):
    """Operators that give elements and where they were."""
    function = _native.operators()[name]

    def apply(input, *args, **kwargs):
        found = function(input._integers.float(), *args, **kwargs)
        values, places = found
        pair = input._with(values.to(input._integers.dtype)), places
        return pair if type(found) in (tuple, list) else type(found)(pair)

    return apply


for _name in ("_max_pool1d", "_max_pool2d", "_max_pool3d", "sort", "topk"):
    rules[_name] = _ordered(_name)


def _averaged(name):
    """Averages of integers, in their own units."""
    function = _native.operators()[name]

    def apply(input, *args, **kwargs):
        average = function(input._integers.double() - input._zero_point, *args, **kwargs)
        return input._with(cresset.round(average + input._zero_point).to(input._integers.dtype))

    return apply


for _name in ("avg_pool1d", "avg_pool2d", "avg_pool3d"):
    rules["_" + _name], rules["_adaptive_" + _name] = _averaged("_" + _name), _averaged("_adaptive_" + _name)


def _mean(input, *args, **kwargs):
    means = cresset.mean(dequantized(input), *args, **kwargs)
    return quantize_per_tensor(means, input._scale, input._zero_point, input._dtype)


rules["mean"] = _mean


def _leaky_relu(input, *args, **kwargs):
    numbers = _native.operators()["leaky_relu"](fused_numbers(input), *args, **kwargs)
    return rounded(numbers, input._scale, input._zero_point, input._dtype)


rules["leaky_relu"] = _leaky_relu


def _pad(input, sides, mode, value, back):
    """What is added stands for zero; other numbers cannot be told from an integer."""
    padded = _native.operators()["_pad"](input._integers.float() - input._zero_point, sides, mode, value, back)
    return input._with((padded + input._zero_point).to(input._integers.dtype))


rules["_pad"] = _pad


def _compared(name):
    function = _native.operators()[name]
    return lambda *args: function(*(dequantized(a) if isinstance(a, QuantizedTensor) else a for a in args))


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "amax", "amin", "argmax", "argmin", "isnan"):
    rules[_name] = _compared(_name)


def _extreme(name):
    """The largest or the least element, or one of each line with its place, or by pairs."""
    function, along_lines = _native.operators()[name], _ordered(name)

    def apply(input, *args, **kwargs):
        if not args and not kwargs:
            return input._with(function(input._integers))
        if kwargs or isinstance(args[0], int):
            return along_lines(input, *args, **kwargs)
        return function(*(dequantized(a) if isinstance(a, QuantizedTensor) else a for a in (input, *args)))

    return apply


for _name in ("max", "min"):
    rules[_name] = _extreme(_name)


def _relu(input):
    return input._with(
        input._integers.clamp(min=input._zero_point)
        if input._axis is None
        else cresset.maximum(
            input._integers, along(input._zero_point, input.dim(), input._axis).to(input._integers.dtype)
        )
    )


rules["relu"] = _relu
rules["relu6"] = lambda input: _clamp(input, 0.0, 6.0)


def _in_numbers(name, scale=None, zero_of_unsigned=0):
    """A rule by the numbers that the integers stand for; the result has a fixed scale, or that of the input."""
    function = _native.operators()[name]

    def apply(input, *args, **kwargs):
        numbers = function(dequantized(input), *args, **kwargs)
        if scale is None:
            return rounded(numbers, input._scale, input._zero_point, input._dtype)
        low = -128 if input._dtype == _native.qint8 else 0
        return rounded(numbers, scale, low + zero_of_unsigned, input._dtype)

    return apply


rules["threshold"] = _in_numbers("threshold")
for _name, _range in {"sigmoid": (1 / 256,), "hardsigmoid": (1 / 256,), "tanh": (2 / 256, 128)}.items():
    if _name in _native.operators():
        rules[_name] = _in_numbers(_name, *_range)


def _clamp(input, min=None, max=None):
    """The bounds become integers, and the integers are clamped."""
    bounds = [
        None if bound is None else int(quantize_per_tensor(
            cresset.tensor([float(bound)]), input._scale, input._zero_point, input._dtype)._integers)
        for bound in (min, max)
    ]  # fmt: skip
    return input._with(input._integers.clamp(*bounds))


rules["clamp"] = rules["hardtanh"] = _clamp


def _to(input, *args, **kwargs):
    wanted = [a for a in (*args, *kwargs.values()) if isinstance(a, cresset.dtype)]
    if any(dtype != input.dtype for dtype in wanted):
        raise RuntimeError(f"to: a quantized tensor stays {input.dtype}; call dequantize() and convert the result")
    held = input._integers.dtype
    args = [held if isinstance(a, cresset.dtype) else a for a in args]
    kwargs = {name: held if isinstance(a, cresset.dtype) else a for name, a in kwargs.items()}
    integers = input._integers.to(*args, **kwargs)
    return input if integers is input._integers else input._with(integers)


rules["to"] = _to
rules["float"] = dequantized


def _cat(tensors, dim=0):
    first = tensors[0]
    if any(t._axis is not None for t in tensors):
        raise RuntimeError("cat: not implemented for tensors with one scale for each channel; call dequantize() first")
    joined = cresset.cat([dequantized(t) for t in tensors], dim)
    return quantize_per_tensor(joined, first._scale, first._zero_point, first._dtype)


rules["cat"] = _cat


def _stack(tensors, dim=0):
    return _cat([t.unsqueeze(dim) for t in tensors], dim)


rules["stack"] = _stack
