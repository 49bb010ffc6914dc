"""Pooling: the maximum or the mean over windows of the last one to three dimensions, and max_unpool, the way back."""

import math

import cresset

from .._native import name_node
from .autocast import autocast
from .dimensions import integers, is_integer, spread
from .metadata import in_plain_order
from .registry import batch, constant, flat, function, onnx, operator, placement

# ---------------------------------------------------------------- derivatives


def _at(tensor, indices, rank):
    """The elements of `tensor` at places in its last `rank` dimensions, counted as one."""
    lead = tensor.shape[:-rank]
    if indices.numel() == 0:
        return tensor.new_zeros(indices.shape)
    return tensor.reshape(*lead, -1).gather(-1, indices.reshape(*lead, -1)).reshape(indices.shape)


def _each(values, rank):
    """One number for each dimension."""
    return values * rank if len(values) == 1 else values


def _refuse_empty_windows(who, grad):
    """Nothing flows back through an adaptive pooling that gave no windows."""
    if 0 in grad.shape[1:]:
        raise RuntimeError(
            f"{who.lstrip('_')}_backward(): Expected grad_output to have non-zero size for non-batch dimensions, but "
            f"grad_output has sizes {list(grad.shape)} with dimension {list(grad.shape).index(0, 1)} being empty"
        )


def _differentiate_max(name, rank):
    """The gradient of a maximum goes to the element that was it."""
    op = operator(name, "The maxima over windows, and where in the plane they are.")
    if not name.startswith("_max_pool"):
        adaptive = name.startswith("_adaptive")

        @op.derivative
        @flat
        @constant("random_samples")
        def _(grads, input_info, indices):
            if adaptive:
                _refuse_empty_windows(name, grads[0])
            sizes, counts = input_info.shape[-rank:], indices.shape[-rank:]
            window = []
            if adaptive and all(count and size % count == 0 for size, count in zip(sizes, counts, strict=True)):
                steps = [size // count for size, count in zip(sizes, counts, strict=True)]  # the windows slide
                window = [*steps, *steps, *[0] * rank, *[1] * rank]
            yield lambda: cresset._max_pool_gradient(grads[0], indices, input_info.shape, rank, window)

        return

    @op.derivative
    @flat
    def _(grads, input_info, indices, kernel_size, stride, padding, dilation):
        kernel = _each(kernel_size, rank)
        window = [*kernel, *(_each(stride, rank) or kernel), *_each(padding, rank), *_each(dilation, rank)]
        yield lambda: cresset._max_pool_gradient(grads[0], indices, input_info.shape, rank, window)


def _differentiate_mean(rank):
    """The gradient of a mean is shared out over its window; the gradient of that is a mean again."""
    avg_pool = operator(f"_avg_pool{rank}d", "The means over windows.")
    adaptive_avg_pool = operator(f"_adaptive_avg_pool{rank}d", "The means over windows that cover the input evenly.")

    @avg_pool.derivative
    @flat
    def _(grad, input_info, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        kernel = _each(kernel_size, rank)
        window = kernel, _each(stride, rank) or kernel, _each(padding, rank)
        yield lambda: cresset._avg_pool_gradient(
            grad, input_info.shape, *window, ceil_mode, count_include_pad, divisor_override
        )

    @adaptive_avg_pool.derivative
    @flat
    def _(grad, input_info):
        _refuse_empty_windows(f"adaptive_avg_pool{rank}d", grad)
        shape = input_info.shape
        # One mean of each plane: its gradient is a constant. (A kernel has it sooner on the CPU.)
        if all(n == 1 for n in grad.shape[-rank:]) and (grad.device.type != "cpu" or cresset.is_grad_enabled()):
            yield lambda: (grad / math.prod(shape[-rank:])).expand(shape)
            return
        yield lambda: cresset._adaptive_avg_pool_gradient(grad, shape, rank)


for _rank in (1, 2, 3):
    _differentiate_max(f"_max_pool{_rank}d", _rank)
    _differentiate_max(f"_adaptive_max_pool{_rank}d", _rank)
    _differentiate_mean(_rank)
for _rank in (2, 3):
    _differentiate_max(f"_fractional_max_pool{_rank}d", _rank)

_max_pool_gradient = operator("_max_pool_gradient", "Add every gradient to the element that was the maximum.")
_max_unpool = operator("_max_unpool", "Put every value at its index; zero elsewhere.")
_avg_pool_gradient = operator("_avg_pool_gradient", "Share every gradient out over its window.")
_adaptive_avg_pool_gradient = operator("_adaptive_avg_pool_gradient", "Share every gradient out over its window.")


@_max_pool_gradient.derivative
@_max_unpool.derivative
@constant("indices")
def _(grad, indices, rank):
    yield lambda: _at(grad, indices, rank)


@_avg_pool_gradient.derivative
def _(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    pool = getattr(cresset, f"_avg_pool{len(kernel_size)}d")
    yield lambda: pool(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@_adaptive_avg_pool_gradient.derivative
def _(grad, grad_output_info, rank):
    pool = getattr(cresset, f"_adaptive_avg_pool{rank}d")
    yield lambda: pool(grad, grad_output_info.shape[-rank:])


# ---------------------------------------------------------------- windows that slide


def _numbers(who, **given):
    """For each argument one number or several, as a tuple; None as none."""
    return [() if value is None else integers(who, name, value) for name, value in given.items()]


def _is_volume_of_channels(input):
    """Whether one volume (C, D, H, W) has its channels innermost: a layout that max_pool3d keeps."""
    return (
        input.ndim == 4
        and not input.is_contiguous()
        and input.unsqueeze(0).is_contiguous(memory_format=cresset.channels_last_3d)
    )


def _max_pool(rank, input, kernel_size, stride, padding, dilation, ceil_mode):
    if rank == 3 and _is_volume_of_channels(input):
        found = _max_pool(3, input.contiguous(), kernel_size, stride, padding, dilation, ceil_mode)
        return tuple(one.unsqueeze(0).clone(memory_format=cresset.channels_last_3d).squeeze(0) for one in found)
    pool = getattr(cresset, f"_max_pool{rank}d")
    window = _numbers(f"max_pool{rank}d", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
    return tuple(pool(input, *window, bool(ceil_mode)))


@function
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of a signal (N, C, L) or (C, L).

    Args:
        stride: from one window to the next; `kernel_size` if None.
        padding: how far windows reach over both ends; at most half a window.
        ceil_mode: a last window may reach over the end further than the padding does.
        return_indices: also give the places of the maxima, for `max_unpool1d`.

    >>> cresset.max_pool1d(cresset.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    result = _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)
    return result if return_indices else result[0]


@function
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of an image (N, C, H, W) or (C, H, W): see `max_pool1d`.

    >>> cresset.max_pool2d(cresset.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    result = _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return result if return_indices else result[0]


@function
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of a volume (N, C, D, H, W) or (C, D, H, W): see `max_pool1d`.

    >>> cresset.max_pool3d(cresset.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    result = _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)
    return result if return_indices else result[0]


@function
def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool1d` and the places of the maxima."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool2d` and the places of the maxima."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool3d` and the places of the maxima."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


def _avg_pool(rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    pool = getattr(cresset, f"_avg_pool{rank}d")
    window = _numbers(f"avg_pool{rank}d", kernel_size=kernel_size, stride=stride, padding=padding)
    return pool(input, *window, bool(ceil_mode), bool(count_include_pad), divisor_override)


@function
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean over windows of a signal (N, C, L) or (C, L): see `avg_pool2d`.

    >>> cresset.avg_pool1d(cresset.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
    tensor([[2.0000, 3.5000]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean over windows of an image (N, C, H, W) or (C, H, W).

    Args:
        stride: from one window to the next; `kernel_size` if None.
        padding: zeros around the image that windows reach over; at most half a window.
        ceil_mode: a last window may reach over the end further than the padding does.
        count_include_pad: padding counts as elements of the window.
        divisor_override: divide by this instead of the number of elements.

    >>> F.avg_pool2d(cresset.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@autocast(cpu="float32")
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean over windows of a volume (N, C, D, H, W) or (C, D, H, W): see `avg_pool2d`.

    >>> F.avg_pool3d(cresset.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    input = in_plain_order(input)
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(who, rank, input, norm_type, kernel_size, stride, ceil_mode):
    (kernel,) = _numbers(who, kernel_size=kernel_size)
    kernel = _each(kernel, rank)
    count = math.prod(kernel)
    if isinstance(norm_type, (int, float)) and abs(norm_type) == math.inf:  # the largest, or the least
        sign = 1 if norm_type > 0 else -1
        return sign * _max_pool(rank, sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode)[0]
    powers = (in_plain_order(input) if rank == 3 else input).pow(norm_type)
    means = _avg_pool(rank, powers, kernel, stride, 0, ceil_mode, True, None)
    # The sum of the powers, whose sign is kept for odd norms.
    return (cresset.sign(means) * cresset.relu(cresset.abs(means))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of a signal: (sum of x ** p) ** (1 / p); the largest |x| for p = inf, the least for -inf.

    >>> lp_pool1d(cresset.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of an image: see `lp_pool1d`.

    >>> lp_pool2d(cresset.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of a volume: see `lp_pool1d`.

    >>> lp_pool3d(cresset.ones(1, 2, 2, 2), 1, 2)
    tensor([[[[8.]]]])
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


# ---------------------------------------------------------------- windows that cover the input evenly


def _wanted(who, input, output_size, rank):
    """The output's sizes; None keeps the input's."""
    if is_integer(output_size):
        return (int(output_size),) * rank
    if not isinstance(output_size, (tuple, list, cresset.Tensor)):
        raise TypeError(f"{who}(): argument 'output_size' must be tuple of ints, not {output_size!r}")
    wanted = tuple(output_size)
    if input.ndim <= len(wanted):
        raise ValueError(f"{who}: Input dimension should be at least {len(wanted) + 1}, got {input.ndim}")
    sizes = input.shape[input.ndim - len(wanted) :]
    return tuple(size if want is None else want for want, size in zip(wanted, sizes))


def _adaptive_mean(rank, input, wanted):
    if (input.numel() == 0 or input.ndim == rank) and all(want == 1 for want in wanted):
        mean = input.mean(tuple(range(-rank, 0)), keepdim=True)  # one mean, empty or without channels
        return name_node(mean, "SqueezeBackward1") if rank == 1 else mean
    return getattr(cresset, f"_adaptive_avg_pool{rank}d")(input, wanted)


@function
def adaptive_avg_pool1d(input, output_size):
    """The mean over `output_size` windows that cover a signal evenly.

    >>> cresset.adaptive_avg_pool1d(cresset.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
    tensor([[2.0000, 3.5000]])
    """
    return _adaptive_mean(1, input, _wanted("adaptive_avg_pool1d", input, output_size, 1))


def adaptive_avg_pool2d(input, output_size):
    """The mean over windows that cover an image evenly, `output_size` of them (one number, or two; None keeps a size).

    >>> F.adaptive_avg_pool2d(cresset.arange(16.0).reshape(1, 4, 4), 1)
    tensor([[[7.5000]]])
    """
    return _adaptive_mean(2, input, _wanted("adaptive_avg_pool2d", input, output_size, 2))


@autocast(cpu="float32")
def adaptive_avg_pool3d(input, output_size):
    """The mean over windows that cover a volume evenly: see `adaptive_avg_pool2d`.

    >>> F.adaptive_avg_pool3d(cresset.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _adaptive_mean(3, in_plain_order(input), _wanted("adaptive_avg_pool3d", input, output_size, 3))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool1d` and the places of the maxima."""
    return tuple(cresset._adaptive_max_pool1d(input, _wanted("adaptive_max_pool1d", input, output_size, 1)))


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool2d` and the places of the maxima."""
    return tuple(cresset._adaptive_max_pool2d(input, _wanted("adaptive_max_pool2d", input, output_size, 2)))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool3d` and the places of the maxima."""
    input = in_plain_order(input)
    return tuple(cresset._adaptive_max_pool3d(input, _wanted("adaptive_max_pool3d", input, output_size, 3)))


# `cresset.adaptive_max_pool1d` gives both results; the one of `nn.functional` asks.
function(adaptive_max_pool1d_with_indices, name="adaptive_max_pool1d")


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maximum over `output_size` windows that cover a signal evenly.

    >>> F.adaptive_max_pool1d(cresset.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maximum over windows that cover an image evenly: see `adaptive_avg_pool2d`.

    >>> F.adaptive_max_pool2d(cresset.arange(16.0).reshape(1, 4, 4), 1)
    tensor([[[15.]]])
    """
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


@autocast(cpu="float32")
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The maximum over windows that cover a volume evenly: see `adaptive_avg_pool2d`.

    >>> F.adaptive_max_pool3d(cresset.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


# ---------------------------------------------------------------- windows at random places


def _fractional_max_pool(rank, input, kernel_size, output_size, output_ratio, samples):
    who = f"fractional_max_pool{rank}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{who} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = (output_ratio,) * rank if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        if len(ratios) != rank:
            raise ValueError(
                f"{who} requires output_ratio to either be a single Int or tuple of Ints, got {output_ratio}"
            )
        output_size = tuple(int(size * ratio) for size, ratio in zip(input.shape[-rank:], ratios))
    for name, given in (("kernel_size", kernel_size), ("output_size", output_size)):
        if not is_integer(given) and len(given) != rank:
            raise RuntimeError(f"{who}: {name} must either be a single Int or tuple of {rank} Ints, got {given}")
    if input.ndim > rank and 0 in input.shape[-rank - 1 :]:
        raise RuntimeError(
            f"{who}: Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
        )
    if samples is None:
        batch = 1 if input.ndim == rank + 1 else input.shape[0]
        samples = cresset.rand(batch, input.shape[-rank - 1], rank, dtype=input.dtype, device=input.device)
    pool = getattr(cresset, f"_fractional_max_pool{rank}d")
    kernel_size, output_size = _numbers(who, kernel_size=kernel_size, output_size=output_size)
    if 0 in output_size:  # no window is put anywhere
        none = input[(..., *(slice(size) for size in (output_size * rank)[:rank]))]
        return none, none.detach().long()
    return tuple(pool(input, kernel_size, output_size, samples))


def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """`fractional_max_pool2d` and the places of the maxima."""
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """`fractional_max_pool3d` and the places of the maxima."""
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@autocast(cpu="float32")
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The maximum over windows whose steps vary at random, so that the output has just the size that is asked for.

    Args:
        output_size: one number, or one for each dimension.
        output_ratio: the output's size as a fraction of the input's, instead of output_size.

    >>> fractional_max_pool2d(cresset.ones(1, 1, 5, 5), 2, output_size=3).shape
    torch.Size([1, 1, 3, 3])
    """
    result = _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


@autocast(cpu="float32")
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The maximum over windows of a volume whose steps vary at random: see `fractional_max_pool2d`.

    >>> fractional_max_pool3d(cresset.ones(1, 1, 5, 5, 5), 2, output_size=3).shape
    torch.Size([1, 1, 3, 3, 3])
    """
    result = _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


# ---------------------------------------------------------------- the way back


def _unpooled_size(input, kernel, stride, padding, output_size, rank):
    """The sizes that max_pool made `input` of; several do, and `output_size` may choose among them."""
    default = [
        (size - 1) * step + window - 2 * pad
        for size, step, window, pad in zip(input.shape[-rank:], stride, kernel, padding)
    ]
    if output_size is None:
        return default
    wanted = list(output_size)
    if len(wanted) == rank + 2:
        wanted = wanted[2:]
    if len(wanted) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} elements, got {wanted}")
    for dim, (size, step) in enumerate(zip(default, stride)):
        if not size - step < wanted[dim] < size + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {size - step} and {size + step})'
            )
    return wanted


def _unpool(rank, input, indices, kernel_size, stride, padding, output_size):
    window = _numbers(f"max_unpool{rank}d", kernel_size=kernel_size, stride=stride, padding=padding)
    kernel, stride, padding = (_each(numbers, rank) for numbers in window)
    stride = stride or kernel
    sizes = _unpooled_size(input, kernel, stride, padding, output_size, rank)
    if len(sizes) != rank:
        number, names = ("one", "two", "three")[rank - 1], ", ".join(("depth", "height", "width")[-rank:])
        raise RuntimeError(
            f"max_unpool{rank}d: There should be exactly {number} elements ({names}) in output_size, but got "
            f"{len(sizes)} elements."
        )
    if rank == 1:  # a plane one element wide, which other forms of programs have an operator for
        sizes = (*input.shape[:-1], *sizes, 1)
        return cresset._max_unpool(input.unsqueeze(-1), indices.unsqueeze(-1), sizes, 2).squeeze(-1)
    return cresset._max_unpool(input, indices, (*input.shape[:-rank], *sizes), rank)


@autocast(cpu="float32")
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put the maxima that `max_pool1d` found back in their places, and zeros elsewhere.

    Args:
        indices: as max_pool1d gives them with return_indices=True.
        output_size: the size of what was pooled, where several sizes give the same number of windows.

    >>> max_unpool1d(*max_pool1d(cresset.tensor([[1.0, 3.0, 5.0, 2.0]]), 2, return_indices=True), 2)
    tensor([[0., 3., 5., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@autocast(cpu="float32")
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put the maxima that `max_pool2d` found back in their places, and zeros elsewhere: see `max_unpool1d`.

    >>> max_unpool2d(*max_pool2d(cresset.arange(4.0).reshape(1, 2, 2), 2, return_indices=True), 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@autocast(cpu="float32")
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put the maxima that `max_pool3d` found back in their places, and zeros elsewhere: see `max_unpool1d`.

    >>> max_unpool3d(*max_pool3d(cresset.ones(1, 1, 1, 2), (1, 1, 2), return_indices=True), (1, 1, 2))
    tensor([[[[1., 0.]]]])
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# --- inside vmap ---


_SPATIAL = {
    f"_{kind}{n}d": n for n in (1, 2, 3) for kind in ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool")
}


@batch(*_SPATIAL)
def _(call):
    value = call.front()
    if call.rank() == _SPATIAL[call.name] + 1:
        return call.run(value, *call.args[1:])
    return _split(call.run(value.flatten(0, 1), *call.args[1:]), call.size)


def _split(result, size):
    if isinstance(result, (tuple, list)):
        return [_split(part, size) for part in result]
    return result.unflatten(0, (size, -1))


@batch("_avg_pool_gradient", "_adaptive_avg_pool_gradient", "_max_pool_gradient", "_max_unpool")
def _(call):
    tensors = 2 if call.name.startswith("_max") else 1
    sizes = call.args[tensors]
    place = call.place("rank")
    spatial = len(call.args[2]) if place is None else call.args[place]
    values = [call.full(i) for i in range(tensors)]
    # The sizes may leave out the images and channels.
    if call.rank() == spatial + 1:
        return call.run(*values, _with_lead(sizes, values[0].shape[:2], spatial), *call.args[tensors + 1 :])
    values = [value.flatten(0, 1) for value in values]
    return call.run(*values, _with_lead(sizes, values[0].shape[:2], spatial), *call.args[tensors + 1 :]).unflatten(
        0, (call.size, -1)
    )


def _with_lead(sizes, lead, spatial):
    return sizes if len(sizes) == spatial else (*lead, *sizes[len(sizes) - spatial :])


# --- as ONNX ---


def _pooled_as_onnx(g, kind, x, input, rank, outputs=1, **attributes):
    """Pool over the last `rank` dimensions; ONNX wants a batch."""
    batched = len(input.shape) == rank + 2
    if not batched:
        x = g.unsqueeze(x, [0])
    found = g.op(kind, x, outputs=outputs, **attributes)
    found = [found] if outputs == 1 else found
    return found if batched else [g.squeeze(f, [0]) for f in found]


def _max_pool_as_onnx(rank):
    def rule(g, input, kernel_size, stride, padding, dilation, ceil_mode):
        x = g.cast(input, input.dtype, cresset.float32) if not input.dtype.is_floating_point else g.name(input)
        settings = {
            "kernel_shape": spread(kernel_size, rank), "strides": spread(stride or kernel_size, rank),
            "pads": spread(padding, rank) * 2,
            "dilations": spread(dilation, rank), "ceil_mode": int(ceil_mode),
        }  # fmt: skip
        values, places = _pooled_as_onnx(g, "MaxPool", x, input, rank, outputs=2, **settings)
        if not input.dtype.is_floating_point:
            values = g.cast(values, cresset.float32, input.dtype)
        # ONNX counts places in the whole tensor, the operator in the plane of each channel.
        plane = input.shape[-1]
        for size in input.shape[-rank:-1]:
            plane = size * plane
        return [values, g.op("Mod", places, g.number(plane, cresset.int64))]

    return rule


def _avg_pool_as_onnx(rank):
    def rule(g, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        if not input.dtype.is_floating_point:
            raise g.unsupported(f"means of {input.dtype}")
        if divisor_override is not None:
            raise g.unsupported("divisor_override")
        if ceil_mode and g.opset < 19:
            raise g.unsupported(f"ceil_mode=True divides by another count in opset {g.opset}; opset 19 agrees")
        return _pooled_as_onnx(
            g, "AveragePool", g.name(input), input, rank, kernel_shape=spread(kernel_size, rank),
            strides=spread(stride or kernel_size, rank),
            pads=spread(padding, rank) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )[0]  # fmt: skip

    return rule


def _by_windows_as_onnx(g, input, sizes, wanted, kind):
    """Windows that differ in size, one dimension after the other."""
    x, first = g.name(input), len(input.shape) - len(sizes)
    for axis, (size, count) in enumerate(zip(sizes, wanted, strict=True), first):
        reduction = "ReduceMean" if kind == "AveragePool" else "ReduceMax"
        windows = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        x = g.op("Concat", *(g.reduce(reduction, g.slice(x, axis, a, b), [axis]) for a, b in windows), axis=axis)
    return x


def _adaptive_as_onnx(rank, kind):
    def rule(g, input, output_size):
        sizes, wanted = input.shape[-rank:], spread(output_size, rank)
        wanted = [s if w is None else w for s, w in zip(sizes, wanted, strict=True)]
        if all(w == 1 for w in wanted):
            return [_pooled_as_onnx(g, f"Global{kind}", g.name(input), input, rank)[0], None][: len(g.call.results)]
        if list(sizes) == wanted:
            return [input, None][: len(g.call.results)]
        if any(g.is_size(s) or g.is_size(w) for s, w in zip(sizes, wanted, strict=True)):
            raise g.unsupported("pooling a free dimension to a fixed size other than 1, or to a free one")
        if any(s % w for s, w in zip(sizes, wanted, strict=True)):
            return [_by_windows_as_onnx(g, input, sizes, wanted, kind), None][: len(g.call.results)]
        steps = [s // w for s, w in zip(sizes, wanted, strict=True)]
        return [_pooled_as_onnx(g, kind, g.name(input), input, rank, kernel_shape=steps, strides=steps)[0], None][
            : len(g.call.results)
        ]

    return rule


@onnx("_max_unpool")
def _(g, values, indices, output_size, rank):
    """Each value at its place in the plane of its channel, zeros elsewhere."""
    lead, plane = list(g.result.shape[: len(g.result.shape) - rank]), 1
    for size in g.result.shape[len(lead) :]:
        plane = size * plane
    zeros = g.op("Expand", g.number(0, values.dtype), g.sizes([*lead, plane]))
    flat = [g.reshape(t, [*lead, -1], values.shape) for t in (values, indices)]
    return g.reshape(g.op("ScatterElements", zeros, flat[1], flat[0], axis=len(lead)), g.result.shape)


for _rank in (1, 2, 3):
    onnx(f"_max_pool{_rank}d")(_max_pool_as_onnx(_rank))
    onnx(f"_avg_pool{_rank}d")(_avg_pool_as_onnx(_rank))
    onnx(f"_adaptive_avg_pool{_rank}d")(_adaptive_as_onnx(_rank, "AveragePool"))
    onnx(f"_adaptive_max_pool{_rank}d")(_adaptive_as_onnx(_rank, "MaxPool"))

# How they lie on several processes: a word of distributed/tensor/words.py.
for _rank in (1, 2, 3):
    placement(*[f"{_kind}_pool{_rank}d" for _kind in ("_max", "_avg", "_adaptive_avg", "_adaptive_max")])("rows")
