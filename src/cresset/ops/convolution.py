"""Convolution in one to three dimensions, plain and transposed.

forward(x, w), input_gradient(dy, w) and weight_gradient(dy, x) are linear in each argument, and the derivatives of each
are the other two: that is all there is to differentiate, as often as one likes.
"""

import cresset

from .dimensions import integers, spread
from .registry import batch, function, onnx, operator, placement

_input_gradient = operator(
    "_convolution_input_gradient",
    """The gradient of a convolution with respect to its input of size `input_size`, given that of its result.""",
)
_weight_gradient = operator(
    "_convolution_weight_gradient",
    """The gradient of a convolution with respect to its weight of size `weight_size`, given that of its result.""",
)

_bias_gradient = operator(
    "_convolution_bias_gradient",
    """The gradient of a convolution with respect to its bias, given that of its result: the sum of each channel.""",
)

convolution = operator(
    "convolution",
    """Convolution of a batch (N, C, ...) with one to three spatial dimensions, or its transpose.

    `conv1d` to `conv3d` and `conv_transpose1d` to `conv_transpose3d` are friendlier forms of it.

    >>> image, kernel = cresset.arange(5.0).reshape(1, 1, 5), cresset.tensor([[[1.0, 0.0, -1.0]]])
    >>> cresset.convolution(image, kernel, None, [1], [0], [1], False, [0], 1)
    tensor([[[-2., -2., -2.]]])
    """,
    autocast="lower",
)


def _conjugate(tensor):
    return tensor.conj() if tensor.is_complex() else tensor


def _each(values, count):
    """A list of one number for each dimension."""
    values = tuple(values)
    return values * count if len(values) == 1 else values


def _forward(input, weight, like, stride, padding, dilation, groups):
    """The convolution, cut to the size of `like`: a transposed convolution may have had windows left over."""
    if 0 in like:  # of images without an element: no window fits into what came of them
        return (input * 0).sum().expand(like)
    result = cresset.convolution(input, weight, None, stride, padding, dilation, False, (0,) * len(stride), groups)
    for dim in range(2, result.ndim):
        if result.shape[dim] != like[dim]:
            result = result.narrow(dim, 0, like[dim])
    return result


@convolution.derivative
def _(grad, input, weight, stride, padding, dilation, transposed, groups, needs):
    rank = weight.ndim - 2
    # First, since a gradient that is still to be computed is summed as it is made (native/dispatch/late.h).
    sums = cresset._convolution_bias_gradient(grad) if needs[2] and grad.is_floating_point() else None
    stride, padding, dilation = _each(stride, rank), _each(padding, rank), _each(dilation, rank)
    if transposed:
        yield lambda: _forward(grad, _conjugate(weight), input.shape, stride, padding, dilation, groups)
        yield lambda: cresset._convolution_weight_gradient(
            _conjugate(input), grad, weight.shape, stride, padding, dilation, groups
        )
    else:
        yield lambda: cresset._convolution_input_gradient(
            grad, _conjugate(weight), input.shape, stride, padding, dilation, groups
        )
        yield lambda: cresset._convolution_weight_gradient(
            grad, _conjugate(input), weight.shape, stride, padding, dilation, groups
        )
    others = [0, *range(2, grad.ndim)]
    yield lambda: grad.sum(others) if sums is None else sums


@_bias_gradient.derivative
def _(grad, grad_output_info):
    yield lambda: grad.reshape(-1, *[1] * (grad_output_info.ndim - 2)).expand(grad_output_info.shape)


@_input_gradient.derivative
def _(grad, grad_output, weight, stride, padding, dilation, groups):
    yield lambda: _forward(grad, _conjugate(weight), grad_output.shape, stride, padding, dilation, groups)
    yield lambda: cresset._convolution_weight_gradient(
        _conjugate(grad_output), grad, weight.shape, stride, padding, dilation, groups
    )


@_weight_gradient.derivative
def _(grad, grad_output, input, stride, padding, dilation, groups):
    yield lambda: _forward(_conjugate(input), grad, grad_output.shape, stride, padding, dilation, groups)
    yield lambda: cresset._convolution_input_gradient(
        _conjugate(grad_output), grad, input.shape, stride, padding, dilation, groups
    )


def _check_rank(who, input, weight, rank):
    for name, value in (("input", input), ("weight", weight)):
        if not isinstance(value, cresset.Tensor):
            raise TypeError(f"{who}(): argument '{name}' must be Tensor, not {type(value).__name__}")
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{who}: Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {who}, "
            f"but got input of size: {list(input.shape)}"
        )
    if weight.ndim != rank + 2:
        raise RuntimeError(
            f"{who}: Expected {rank + 2}-dimensional weight, but got weight of size {list(weight.shape)} instead"
        )


def same_padding(kernel_size, dilation):
    """(before, after) for each dimension: what keeps the size of an image at stride one. The odd element belongs
    after."""
    totals = [step * (size - 1) for size, step in zip(kernel_size, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _padded_to_same(who, input, weight, stride, dilation, rank):
    """The input, padded where one side needs more than the other, and the padding that both sides have in common."""
    if any(step != 1 for step in stride):
        raise RuntimeError(f"{who}: padding='same' is not supported for strided convolutions")
    amounts = same_padding(weight.shape[2:], _each(dilation, rank))
    for dim, (before, after) in enumerate(amounts, start=2):
        if after > before:
            shape = [after - before if d == dim else size for d, size in enumerate(input.shape)]
            input = cresset.cat([input, input.new_zeros(shape)], dim)
    return input, tuple(before for before, _ in amounts)


def _convolve(who, rank, input, weight, bias, stride, padding, dilation, groups):
    _check_rank(who, input, weight, rank)
    stride, dilation = integers(who, "stride", stride), integers(who, "dilation", dilation)
    batched = input.ndim == rank + 2
    if not batched:
        input = input.unsqueeze(0)
    if isinstance(padding, str):
        if padding == "same":
            input, padding = _padded_to_same(who, input, weight, stride, dilation, rank)
        elif padding == "valid":
            padding = (0,)
        else:
            raise RuntimeError(f"{who}: Invalid padding string: '{padding}'")
    else:
        padding = integers(who, "padding", padding)
    result = cresset.convolution(input, weight, bias, stride, padding, dilation, False, (0,), groups)
    return result if batched else result.squeeze(0)


def _convolve_transposed(who, rank, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check_rank(who, input, weight, rank)
    stride, dilation = integers(who, "stride", stride), integers(who, "dilation", dilation)
    padding, output_padding = integers(who, "padding", padding), integers(who, "output_padding", output_padding)
    batched = input.ndim == rank + 2
    if not batched:
        input = input.unsqueeze(0)
    result = cresset.convolution(input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return result if batched else result.squeeze(0)


@function
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Slide `weight` over a signal and sum the products.

    Args:
        input: (N, C, L) or (C, L).
        weight: (out_channels, C / groups, kernel).
        padding: zeros on both sides; or 'valid' (none), or 'same' (as many as keep the length).
        groups: the channels are cut into so many groups, which do not see each other.

    >>> cresset.conv1d(cresset.arange(5.0).reshape(1, 5), cresset.ones(1, 1, 3))
    tensor([[3., 6., 9.]])
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@function
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Slide `weight` over an image and sum the products.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: (out_channels, C / groups, kernel height, kernel width).
        padding: zeros around the image; or 'valid' (none), or 'same' (as many as keep the size).
        groups: the channels are cut into so many groups, which do not see each other.

    >>> cresset.conv2d(cresset.ones(1, 3, 3), cresset.ones(1, 1, 3, 3), padding=1)
    tensor([[[4., 6., 4.],
             [6., 9., 6.],
             [4., 6., 4.]]])
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@function
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Slide `weight` over a volume (N, C, D, H, W) or (C, D, H, W) and sum the products: see `conv2d`.

    >>> cresset.conv3d(cresset.ones(1, 2, 2, 2), cresset.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@function
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv1d (the gradient with respect to its input): it spreads every element with `weight`.

    Args:
        weight: (C, out_channels / groups, kernel).
        padding: how much is cut off on both sides of the result.
        output_padding: how much longer the result is on one side, of the lengths that conv1d maps to the input's.

    >>> cresset.conv_transpose1d(cresset.tensor([[1.0, 2.0]]), cresset.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]])
    """
    return _convolve_transposed(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv2d (the gradient with respect to its input): see `conv_transpose1d`.

    >>> cresset.conv_transpose2d(cresset.ones(1, 1, 1), cresset.ones(1, 1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    return _convolve_transposed(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv3d (the gradient with respect to its input): see `conv_transpose1d`.

    >>> cresset.conv_transpose3d(cresset.ones(1, 1, 1, 1), cresset.ones(1, 1, 1, 1, 2))
    tensor([[[[1., 1.]]]])
    """
    return _convolve_transposed(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@function(autocast={"cuda": "lower"})
def conv_tbc(input, weight, bias, pad=0):
    """conv1d with time first: (time, batch, channels) and a weight (kernel, channels, out_channels).

    >>> cresset.conv_tbc(cresset.ones(3, 1, 2), cresset.ones(3, 2, 1), cresset.zeros(1))
    tensor([[[6.]]])
    """
    result = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


# --- inside vmap ---


def _in_images(value):
    """(B, N, C, ...) as (B N, C, ...)."""
    return value.flatten(0, 1)


@batch("convolution")
def _(call):
    if call.rank(0) < call.rank(1):  # a single image

        def of_one(input, *others):
            return cresset.convolution(input.unsqueeze(0), *others).squeeze(0)

        return call.made_of(of_one)
    input, weight, bias, *rest = call.args
    transposed, groups = rest[3], rest[5]
    if call.dims[0] is None and call.dims[1] is None:
        result = call.run(input, weight, None, *rest)
    elif call.dims[1] is None:
        result = call.run(_in_images(call.front(0)), weight, bias if call.dims[2] is None else None, *rest).unflatten(
            0, (call.size, -1)
        )
    else:
        if call.dims[0] is None and groups == 1 and not transposed:
            result = call.run(input, call.in_channels(call.front(1), 0), None, *rest)
        else:
            result = call.run(
                call.in_channels(call.full(0)), call.in_channels(call.front(1), 0), None, *rest[:5], groups * call.size
            )
        result = call.out_of_channels(result)
    if bias is None or (call.dims[1] is None and call.dims[2] is None):
        return result
    spatial = [1] * (call.rank(1) - 2)
    return result + call.front(2).reshape((-1, *spatial) if call.dims[2] is None else (call.size, 1, -1, *spatial))


@batch("_convolution_input_gradient")
def _(call):
    grad, weight, (images, channels, *spatial), *rest, groups = call.args
    if call.dims[1] is None:
        return call.run(
            _in_images(call.front(0)), weight, (images * call.size, channels, *spatial), *rest, groups
        ).unflatten(0, (call.size, -1))
    size = (images, channels * call.size, *spatial)
    result = call.run(
        call.in_channels(call.full(0)), call.in_channels(call.front(1), 0), size, *rest, groups * call.size
    )
    return call.out_of_channels(result)


@batch("_convolution_weight_gradient")
def _(call):
    _, _, (out, *others), *rest, groups = call.args
    result = call.run(
        call.in_channels(call.full(0)),
        call.in_channels(call.full(1)),
        (out * call.size, *others),
        *rest,
        groups * call.size,
    )
    return result.unflatten(0, (call.size, -1))


@batch("_convolution_bias_gradient")
def _(call):
    """The sum over all but the channels, which are those of all samples."""
    return call.run(call.in_channels(call.front())).unflatten(0, (call.size, -1))


# --- as ONNX ---


@onnx("convolution")
def _(g, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(weight.shape) - 2
    dtype = g.result.dtype
    if not dtype.is_floating_point:
        raise g.unsupported(f"convolution of {dtype}; ONNX has that of floats")
    x, w, b = (None if t is None else g.cast(t, t.dtype, dtype) for t in (input, weight, bias))
    batched = len(input.shape) == rank + 2
    pads = spread(padding, rank) * 2
    attributes = {
        "kernel_shape": list(weight.shape[2:]),
        "strides": spread(stride, rank),
        "pads": pads,
        "dilations": spread(dilation, rank),
        "group": groups,
    }
    if not batched:
        x = g.unsqueeze(x, [0])
    if transposed:
        found = g.op("ConvTranspose", x, w, b, output_padding=spread(output_padding, rank), **attributes)
    else:
        found = g.op("Conv", x, w, b, **attributes)
    return found if batched else g.squeeze(found, [0])


# How they lie on several processes: words of distributed/tensor/words.py.
placement("convolution")("convolved")
