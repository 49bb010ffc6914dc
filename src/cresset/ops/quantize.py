"""Quantization: real numbers to integers with a scale, and back; and its imitation in floating point, for training.

The class of quantized tensors is in cresset/tensors/quantized.py, which loads at the first call.
"""

from typing import Any

import cresset

from .registry import function


@function
def quantize_per_tensor(input, scale, zero_point, dtype) -> Any:
    """The tensor as integers round(x / scale) + zero_point.

    >>> x = cresset.tensor([-1.0, 0.0, 1.0])
    >>> q = cresset.quantize_per_tensor(x, scale=0.5, zero_point=10, dtype=cresset.quint8)
    >>> q.int_repr(), q.dequantize()
    (tensor([ 8, 10, 12], dtype=torch.uint8), tensor([-1.,  0.,  1.]))
    """
    from ..tensors.quantized import quantize_per_tensor as quantize

    return quantize(input, scale, zero_point, dtype)


@function
def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """The tensor as integers, with a scale and a zero point for each place of dimension `axis`.

    >>> x = cresset.tensor([[1.0, 2.0], [10.0, 20.0]])
    >>> cresset.quantize_per_channel(x, cresset.tensor([0.5, 5.0]), cresset.tensor([0, 0]), 0, cresset.qint8).int_repr()
    tensor([[2, 4],
            [2, 4]], dtype=torch.int8)
    """
    from ..tensors.quantized import quantize_per_channel as quantize

    return quantize(input, scales, zero_points, axis, dtype)


@function
def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """The tensor as integers, with the scale and the zero point that its extremes ask for.

    >>> cresset.quantize_per_tensor_dynamic(cresset.tensor([0.0, 255.0]), cresset.quint8, False).q_scale()
    1.0
    """
    from ..tensors.quantized import quantize_per_tensor_dynamic as quantize

    return quantize(input, dtype, reduce_range)


@function(method=True)
def dequantize(input) -> Any:
    """The numbers that the integers of a quantized tensor stand for; a floating-point tensor in float32.

    >>> cresset.dequantize(cresset.tensor([1.5]))
    tensor([1.5000])
    """
    if isinstance(input, (list, tuple)):
        return [t.dequantize() for t in input]
    return input.dequantize() if input.is_quantized else input.to(cresset.float32)


@function
def _make_per_tensor_quantized_tensor(input, scale, zero_point):
    """A quantized tensor of given integers."""
    from ..tensors.quantized import quantized

    names = {cresset.int8: cresset.qint8, cresset.uint8: cresset.quint8, cresset.int32: cresset.qint32}
    if input.dtype not in names:
        raise RuntimeError(f"_make_per_tensor_quantized_tensor: expected int8, uint8 or int32, got {input.dtype}")
    return quantized(input.clone(), names[input.dtype], float(scale), int(zero_point))


@function
def _make_per_channel_quantized_tensor(input, scale, zero_point, axis):
    """A quantized tensor of given integers, with a scale for each channel."""
    from ..tensors.quantized import quantized

    names = {cresset.int8: cresset.qint8, cresset.uint8: cresset.quint8, cresset.int32: cresset.qint32}
    if input.dtype not in names:
        raise RuntimeError(f"_make_per_channel_quantized_tensor: expected int8, uint8 or int32, got {input.dtype}")
    return quantized(input.clone(), names[input.dtype], scale.double(), zero_point.long(), axis)


def _of_quantized(name, what, is_function=True):
    """A method of quantized tensors, which have their own: what is here is the function, and the error of other
    tensors.
    """

    def ask(input):
        if input.is_quantized:
            return getattr(input, name)()
        raise RuntimeError(f"{name}: expected a quantized tensor, got {input.dtype}; quantize_per_tensor makes one")

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"{what} of a quantized tensor."
    function(ask, method=True if is_function else "only")


_of_quantized("int_repr", "The integers")
_of_quantized("q_scale", "The scale")
_of_quantized("q_zero_point", "The integer that stands for zero")
_of_quantized("q_per_channel_scales", "The scale of each channel")
_of_quantized("q_per_channel_zero_points", "The integer of each channel that stands for zero")
_of_quantized("q_per_channel_axis", "The dimension of the channels")
_of_quantized("qscheme", "Whether there is one scale for all or one for each channel", is_function=False)


# ---- layers without a class of their own


def _needs_quantized(name, input):
    if not input.is_quantized:
        raise NotImplementedError(f"{name}: expected a quantized tensor, got {input.dtype}")


@function
def quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """Normalization of quantized channels by given statistics, with a scale for the result.

    >>> x = cresset.quantize_per_tensor(cresset.tensor([[[[0.0]], [[2.0]]]]), 0.5, 0, cresset.quint8)
    >>> one, none = cresset.ones(2), cresset.zeros(2)
    >>> cresset.quantized_batch_norm(x, one, none, one, one, 0.0, 0.5, 4).dequantize().flatten()
    tensor([-1.,  1.])
    """
    _needs_quantized("quantized_batch_norm", input)
    for name, given in (("Weight", weight), ("Bias", bias)):
        if given is None:
            raise RuntimeError(f"quantized_batch_norm: {name} must be provided")
        if given.numel() != input.shape[1]:
            raise RuntimeError(
                f"quantized_batch_norm: Expect {name.lower()} size to match C, {given.numel()} against {input.shape[1]}"
            )
    normalize = cresset.ops.quantized.batch_norm
    return normalize(input, weight, bias, mean, var, eps, output_scale, output_zero_point)


def _max_pool_of_quantized(rank):
    name = f"quantized_max_pool{rank}d"

    def pool(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        _needs_quantized(name, input)
        from ..nn import functional  # upward: the largest of quantized tensors is found by nn.functional's rules

        largest = getattr(functional, f"max_pool{rank}d")
        return largest(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The largest of each window of a quantized tensor, as nn.functional.max_pool{rank}d.

    >>> x = cresset.quantize_per_tensor(cresset.ones({"2, " * rank}4), 0.5, 0, cresset.quint8)
    >>> cresset.{name}(x, 2).int_repr().unique()
    tensor([2], dtype=torch.uint8)
    """
    function(pool)


for _rank in (1, 2, 3):
    _max_pool_of_quantized(_rank)


# ---- imitation


def _bounds(who, quant_min, quant_max):
    if quant_min > quant_max:
        raise RuntimeError(
            f"{who}: `quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}"
        )


def _imitated(input, scale, zero_point, quant_min, quant_max):
    """What quantizing and dequantizing gives. The gradient goes through where the integer was within bounds."""
    with cresset.no_grad():
        seen = input.detach()
        seen = seen.float() if seen.element_size() < 4 else seen  # half precision would round before the integers do
        if isinstance(zero_point, cresset.Tensor) and zero_point.is_floating_point():  # which need not be an integer
            integer = cresset.round(seen * (1.0 / scale) + zero_point)
        else:
            integer = cresset.round(seen * (1.0 / scale)) + zero_point
        inside = (integer >= quant_min) & (integer <= quant_max)
        value = (integer.clamp(quant_min, quant_max) - zero_point) * scale
        value = value.to(input.dtype)
    if not (input.requires_grad and cresset.is_grad_enabled()):
        return value
    passed = input.where(inside, 0.0)
    return value + (passed - passed.detach())  # the difference is zero, and has the gradient


@function
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """What quantizing to the integers from `quant_min` to `quant_max` and back gives, with a gradient of one within the
    bounds.

    >>> cresset.fake_quantize_per_tensor_affine(cresset.tensor([0.12, 9.0]), 0.1, 0, 0, 15)
    tensor([0.1000, 1.5000])
    """
    _bounds("fake_quantize_per_tensor_affine", quant_min, quant_max)
    if not isinstance(zero_point, cresset.Tensor) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            "fake_quantize_per_tensor_affine: `zero_point` must be between `quant_min` and `quant_max`, got "
            f"{zero_point}, {quant_min} and {quant_max}"
        )
    scale = scale if isinstance(scale, cresset.Tensor) else cresset.tensor(scale, dtype=cresset.float32)
    return _imitated(input, scale.detach(), zero_point, quant_min, quant_max)


@function
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each place of dimension `axis`.

    >>> x = cresset.tensor([[0.12], [0.12]])
    >>> cresset.fake_quantize_per_channel_affine(x, cresset.tensor([0.1, 1.0]), cresset.tensor([0, 0]), 0, 0, 15)
    tensor([[0.1000],
            [0.0000]])
    """
    _bounds("fake_quantize_per_channel_affine", quant_min, quant_max)
    if scale.numel() != input.shape[axis] or zero_point.numel() != input.shape[axis]:
        raise RuntimeError(
            "fake_quantize_per_channel_affine: dimensions of scale and zero-point are not consistent with the "
            f"{input.shape[axis]} channels"
        )
    if scale.dtype != cresset.float32:
        raise RuntimeError(f"fake_quantize_per_channel_affine: Scale must be Float, found {scale.dtype}")
    if not zero_point.is_floating_point() and bool(((zero_point < quant_min) | (zero_point > quant_max)).any()):
        raise RuntimeError(
            "fake_quantize_per_channel_affine: `zero_point` must be between `quant_min` and `quant_max`, got "
            f"{zero_point.tolist()}, {quant_min} and {quant_max}"
        )
    shape = [1] * input.dim()
    shape[axis] = -1
    return _imitated(input, scale.detach().reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


@function
def fused_moving_avg_obs_fake_quant(
    input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
    quant_max, ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    """Let running means of the extremes move towards those of `input` (`observer_on`), and give what quantizing with
    the scale and the zero point that they ask for, and back, gives (`fake_quant_on`).

    Args:
        running_min, running_max, scale, zero_point: what is kept from call to call; they are written to.
        averaging_const: how far the means go, from 0 to 1. Infinite ones, as at the start, take the first extremes.
        ch_axis: with `per_row_fake_quant`, the dimension whose places have extremes of their own.
        symmetric_quant: the zero point is in the middle.

    >>> low, high = cresset.tensor([float("inf")]), cresset.tensor([float("-inf")])
    >>> scale, zero_point = cresset.ones(1), cresset.zeros(1, dtype=cresset.int32)
    >>> x, on = cresset.tensor([0.0, 100.4, 255.0]), cresset.tensor([1])
    >>> cresset.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero_point, 0.01, 0, 255, 0)
    tensor([  0., 100., 255.])
    >>> high
    tensor([255.])
    """
    from ..tensors.quantized import choose_parameters

    with cresset.no_grad():
        if observer_on.item() and input.numel():
            seen = input.detach()
            if per_row_fake_quant:
                _check_axis(input, ch_axis)
                seen = seen.movedim(ch_axis, 0).flatten(1) if seen.dim() > 1 else seen.reshape(-1, 1)
                least, greatest = seen.aminmax(dim=1)
            else:
                least, greatest = (extreme.reshape(running_min.shape) for extreme in seen.aminmax())
            for running, now in ((running_min, least), (running_max, greatest)):
                if running.shape != now.shape:
                    running.resize_(now.shape).fill_(float("inf"))
                running.copy_(cresset.where(running.isinf(), now, running + averaging_const * (now - running)))
    if not fake_quant_on.item():
        return input.clone()
    with cresset.no_grad():
        ranges = zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist(), strict=True)
        found = [
            choose_parameters(min(least, 0.0), max(greatest, 0.0), quant_min, quant_max, symmetric_quant)
            for least, greatest in ranges
        ]
        for kept, values in zip((scale, zero_point), zip(*found, strict=True), strict=True):
            kept.resize_(len(found)).copy_(cresset.tensor(values, dtype=kept.dtype))
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _check_axis(input, ch_axis):
    if not 0 <= ch_axis < input.dim():
        raise RuntimeError(
            f"fused_moving_avg_obs_fake_quant: `ch_axis` must be from 0 to {input.dim() - 1} for an input of "
            f"{input.dim()} dimensions, got {ch_axis}"
        )
