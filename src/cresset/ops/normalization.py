"""Normalization over layers, groups and batches: documentation, derivatives, and the functions of PyTorch's `torch`
namespace over the native operators.

A gradient is one fused kernel; when it shall itself be differentiated (create_graph) it is made of ordinary operators
instead.
"""

import math

import cresset

from .. import _native
from .metadata import suggested_format
from .registry import batch, constant, function, onnx, operator, placement

# --- what all normalizations share ---


def _once(make):
    """A function that calls `make` when it is first called, and gives that result ever after."""
    made = []

    def get(which):
        if not made:
            made.append(make())
        return made[0][which]

    return get


def _standardized(x, dims, eps, centered=True):
    """(x - mean) rstd and rstd, of ordinary operators."""
    distance = x - x.mean(dims, keepdim=True) if centered else x
    rstd = (distance.square().mean(dims, keepdim=True) + eps).rsqrt()
    return distance * rstd, rstd


def _standardized_backward(grad, standard, rstd, dims, centered=True):
    """With h = (x - mean) rstd: dx = rstd (dh - mean(dh) - h mean(dh h))"""
    slope = standard * (grad * standard).mean(dims, keepdim=True)
    level = grad.mean(dims, keepdim=True) if centered else 0
    return rstd * (grad - level - slope)


# --- layer and RMS normalization ---

native_layer_norm = operator(
    "native_layer_norm",
    """Layer normalization, the mean and the reciprocal standard deviation: see `layer_norm`.""",
    autocast={"cuda": "float32"},
)


def _row_gradients(grad, input, normalized_shape, mean, rstd, weight, eps, centered, needs):
    """Callables for the gradients of input, weight and bias."""
    if cresset.is_grad_enabled():
        count = len(normalized_shape)
        own, others = tuple(range(-count, 0)), tuple(range(input.ndim - count))
        standard, spread = _standardized(input, own, eps, centered)
        scaled = grad if weight is None else grad * weight
        yield lambda: _standardized_backward(scaled, standard, spread, own, centered)
        yield lambda: (grad * standard).sum(others) if others else grad * standard
        yield lambda: grad.sum(others) if others else grad
        return
    gradients = _once(
        lambda: cresset._normalize_backward(grad, input, normalized_shape, mean, rstd, weight, any(needs[1:]))
    )
    yield lambda: gradients(0)
    yield lambda: gradients(1)
    yield lambda: gradients(2)


@native_layer_norm.derivative
def _(grad, input, normalized_shape, mean, rstd, weight, eps, needs):
    yield from _row_gradients(grad, input, normalized_shape, mean, rstd, weight, eps, True, needs)


@function(autocast={"cuda": "float32"})
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """Normalize over the trailing dimensions `normalized_shape`, then scale by `weight` and shift by `bias`.

    >>> cresset.layer_norm(cresset.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    return cresset.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


_rms_norm = operator("_rms_norm", """RMS normalization and the reciprocal root of the mean square: see `rms_norm`.""")


@_rms_norm.derivative
def _(grad, input, normalized_shape, rstd, weight, eps, needs):
    yield from _row_gradients(grad, input, normalized_shape, None, rstd, weight, eps, False, needs)


@function(autocast={"cuda": "float32"})
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root of the mean square over the trailing dimensions `normalized_shape`, then scale by `weight`.

    Args:
        eps: added to the mean square; the machine epsilon of the dtype (of float, for half precision) if None.

    >>> cresset.rms_norm(cresset.tensor([3.0, 4.0, 0.0, 0.0]), (4,))
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    if eps is None:
        wide = input.dtype in (cresset.float64, cresset.complex128)
        eps = cresset.finfo(cresset.float64 if wide else cresset.float32).eps
    if input.is_complex():
        shapes = [None if x is None else cresset.empty(x.shape, device="meta") for x in (input, weight)]
        cresset._rms_norm(shapes[0], normalized_shape, shapes[1], eps)  # refuses what does not fit
        dims = tuple(range(-len(normalized_shape), 0))
        scaled = input * (input.square().mean(dims, keepdim=True) + eps).rsqrt()
        return scaled if weight is None else scaled * weight
    result, format = cresset._rms_norm(input, normalized_shape, weight, eps)[0], suggested_format(input)
    return result if format is cresset.contiguous_format else result.contiguous(memory_format=format)


# --- group normalization ---

native_group_norm = operator(
    "native_group_norm",
    """Group normalization, the mean and the reciprocal standard deviation: see `group_norm`.""",
    autocast={"cuda": "float32"},
)


@native_group_norm.derivative
def _(grads, arrived, input, weight, mean, rstd, N, C, HxW, group, eps):
    """Of the mean m and the reciprocal deviation r of n elements, with h = (x - m) r: dx = (dm - dr r² h) / n."""
    grad, grad_mean, grad_rstd = (g if came else None for g, came in zip(grads, arrived, strict=True))
    grouped, single, count = (N, group, C // group, HxW), (N, group, 1, 1), C // group * HxW
    flat = None if grad is None else grad.reshape(grouped)
    fused = None
    if grad is not None and not cresset.is_grad_enabled():
        fused = _once(lambda: cresset._group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group))
    if fused is None or grad_rstd is not None:
        standard, spread = _standardized(input.reshape(grouped), (2, 3), eps)

    def to_input():
        parts = []
        if fused is not None:
            parts.append(fused(0).reshape(grouped))
        elif grad is not None:
            scaled = flat if weight is None else flat * weight.reshape(1, group, C // group, 1)
            parts.append(_standardized_backward(scaled, standard, spread, (2, 3)))
        if grad_mean is not None:
            parts.append((grad_mean.reshape(single) / count).expand(grouped))
        if grad_rstd is not None:
            parts.append(grad_rstd.reshape(single) * spread.square() * standard / -count)
        return sum(parts[1:], parts[0]).reshape(input.shape)

    yield to_input
    if grad is not None:
        yield lambda: (flat * standard).sum((0, 3)).reshape(C) if fused is None else fused(1)
        yield lambda: flat.sum((0, 3)).reshape(C) if fused is None else fused(2)
    else:
        yield lambda: None
        yield lambda: None


@function(autocast={"cuda": "float32"})
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """Normalize each of `num_groups` groups of channels of each sample, then scale and shift each channel.

    >>> cresset.group_norm(cresset.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels, *space = input.shape
    return cresset.native_group_norm(input, weight, bias, batch, channels, math.prod(space), num_groups, eps)[0]


# --- batch normalization ---

native_batch_norm = operator(
    "native_batch_norm", """Batch normalization, the mean and the reciprocal standard deviation: see `batch_norm`."""
)


@native_batch_norm.derivative
@constant("running_mean", "running_var")
def _(grad, input, weight, running_mean, running_var, training, mean, rstd, eps):
    shape = (1, -1) + (1,) * (input.ndim - 2)
    others = (0, *range(2, input.ndim))
    if not training:  # the statistics are constants, and no sum may carry an infinite element to others
        mean, rstd = running_mean.to(grad.dtype), (running_var.to(grad.dtype) + eps).rsqrt()
        factor = (rstd if weight is None else rstd * weight).to(grad.dtype)
        yield lambda: grad * factor.reshape(shape)
    if cresset.is_grad_enabled():
        if training:
            standard, spread = _standardized(input, others, eps)
            scaled = grad if weight is None else grad * weight.reshape(shape)
            yield lambda: _standardized_backward(scaled, standard, spread, others)
        else:
            standard = (input - mean.reshape(shape)) * rstd.reshape(shape)
        yield lambda: (grad * standard).sum(others)
        yield lambda: grad.sum(others)
        return
    gradients = _once(lambda: cresset._batch_norm_backward(grad, input, mean, rstd, weight, training))
    if training:
        yield lambda: gradients(0)
    yield lambda: gradients(1)
    yield lambda: gradients(2)


@function
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Normalize each channel (dimension 1) over all samples and places, then scale by `weight` and shift by `bias`.

    Args:
        running_mean, running_var: what is used outside of training; updated by `momentum` in training.

    >>> cresset.batch_norm(cresset.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[-1.],
            [ 1.]])
    """
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is None:
            continue
        if running.requires_grad and cresset.is_grad_enabled():
            raise RuntimeError(
                f"batch_norm: it is not differentiable with respect to argument '{name}'. This input cannot have "
                "requires_grad True."
            )
        pushed = not training and _native.get_tangents(running)
        if pushed and any(_native.get_tangents(t) for t in (input, weight, bias) if t is not None):
            raise RuntimeError(
                "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad "
                f"defined, and {name} has"
            )
    if input.numel() == 0:
        out = input.clone() if weight is None else input * weight[0]
        return out if bias is None else out + bias[0]
    return cresset.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@function
def batch_norm_update_stats(input, running_mean, running_var, momentum):
    """The mean and the variance of each channel (dimension 1), and `running_mean` and `running_var` updated by them.

    Args:
        momentum: how much of the running values is replaced; their variance is the unbiased one.

    >>> mean, var = cresset.zeros(1), cresset.ones(1)
    >>> cresset.batch_norm_update_stats(cresset.tensor([[1.0], [3.0]]), mean, var, 0.5)
    (tensor([2.]), tensor([1.]))
    >>> mean, var
    (tensor([1.]), tensor([1.5000]))
    """
    if input.numel() == 0:
        raise RuntimeError(
            "batch_norm_update_stats: input tensor must have at least one element, but got input_sizes = "
            f"{list(input.shape)}"
        )
    others = (0, *range(2, input.ndim))
    mean, var = input.mean(others), input.var(others, correction=0)
    count = input.numel() // input.size(1)
    with cresset.no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_((var * count).div(count - 1).to(running_var.dtype), momentum)  # of one element: nan
    return mean, var


@function
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Normalize each channel of each sample over its places, then scale by `weight` and shift by `bias`.

    Args:
        running_mean, running_var: means over the samples; used if `use_input_stats` is false, else updated by
            `momentum`.

    >>> cresset.instance_norm(cresset.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    samples, channels = input.shape[:2]
    dtype = input.dtype if weight is None else weight.dtype
    mean, var = (None if t is None else t.to(dtype).repeat(samples) for t in (running_mean, running_var))
    weight, bias = (None if t is None else t.repeat(samples) for t in (weight, bias))
    flat = input.contiguous().view(1, samples * channels, *input.shape[2:])
    out = cresset.batch_norm(flat, weight, bias, mean, var, use_input_stats, momentum, eps, cudnn_enabled)
    if use_input_stats:
        with cresset.no_grad():
            for running, each in ((running_mean, mean), (running_var, var)):
                if running is not None:
                    running.copy_(each.view(samples, channels).mean(0))
    return out.view(input.shape)


# --- inside vmap ---


def _channels(call, i):
    """A vector for each channel, for the channels of all samples; None stays None."""
    return None if call.args[i] is None else call.full(i).flatten()


@batch("native_batch_norm")
def _(call):
    """The channels of every sample are channels of one call."""
    training, momentum, eps = call.args[5:]
    for i in (3, 4):
        if training and call.args[i] is not None and call.dims[i] is None:
            raise RuntimeError(
                "batch_norm: Batch norm got a batched tensor as input while the running_mean or running_var, which "
                "will be updated in place, were not "
                "batched. Inside vmap, use eval() mode, track_running_stats=False, or "
                "torch.func.replace_all_batch_norm_modules_"
            )
    output, *statistics = call.run(
        call.in_channels(call.full(0)), *(_channels(call, i) for i in range(1, 5)), training, momentum, eps
    )
    return [call.out_of_channels(output), *(_per_sample(part, call.size) for part in statistics)]


def _per_sample(vector, size):
    return vector.unflatten(0, (size, -1)) if vector.numel() else vector.reshape(size, -1)


@batch("_batch_norm_backward")
def _(call):
    grad, input = call.in_channels(call.full(0)), call.in_channels(call.full(1))
    to_input, *to_weights = call.run(grad, input, *(_channels(call, i) for i in (2, 3, 4)), call.args[5])
    return [call.out_of_channels(to_input), *(_per_sample(part, call.size) for part in to_weights)]


@batch("native_group_norm")
def _(call):
    count, channels, pixels, groups, eps = call.args[3:]
    output, *statistics = call.run(
        call.in_channels(call.full(0)),
        _channels(call, 1),
        _channels(call, 2),
        count,
        channels * call.size,
        pixels,
        groups * call.size,
        eps,
    )
    return [call.out_of_channels(part) for part in (output, *statistics)]


@batch("_group_norm_backward")
def _(call):
    count, channels, pixels, groups = call.args[5:]
    grad, input, mean, rstd = (call.in_channels(call.full(i)) for i in range(4))
    to_input, *to_weights = call.run(
        grad, input, mean, rstd, _channels(call, 4), count, channels * call.size, pixels, groups * call.size
    )
    return [call.out_of_channels(to_input), *(_per_sample(part, call.size) for part in to_weights)]


@batch("native_layer_norm", "_rms_norm")
def _(call):
    """Leading dimensions are free. A weight for each sample is applied afterwards."""
    input, shape, *weights, eps = call.args
    if all(dim is None for dim in call.dims[2:]):
        return call.run(call.front(), shape, *weights, eps)
    output, *statistics = call.run(call.full(0), shape, *[None] * len(weights), eps)
    for i, combine in zip((2, 3), (cresset.mul, cresset.add), strict=False):
        if i < 2 + len(weights) and call.args[i] is not None:
            output = combine(output, call.padded(i, call.rank()))
    return [output, *statistics]


@batch("_normalize_backward")
def _(call):
    """A weight for each sample is multiplied before. The gradients of weight and bias are sums over the leading
    dimensions, one for each sample.
    """
    _, _, shape, mean, _, weight, parameters = call.args
    grad, input, rstd = call.full(0), call.full(1), call.full(4)
    mean = None if mean is None else call.full(3)
    scaled, kept = (grad, weight) if call.dims[5] is None else (grad * call.padded(5, call.rank()), None)
    to_input = call.run(scaled, input, shape, mean, rstd, kept, False)[0]
    if not parameters:
        return [to_input, grad.new_empty(call.size, 0), grad.new_empty(call.size, 0)]
    normalized = (input if mean is None else input - mean) * rstd
    leading = tuple(range(1, input.dim() - len(shape)))
    return [to_input, *(part.sum(leading) if leading else part for part in (grad * normalized, grad))]


# --- as ONNX ---


def _on_channels(g, vector, rank):
    """A vector of one number a channel, so that it broadcasts over a batch (N, C, ...)."""
    return g.op("Unsqueeze", vector, g.ints([0, *range(2, rank)])) if rank != 1 else vector


def _standardized_as_onnx(g, input, axes, eps):
    """Mean zero and variance one along axes."""
    variance, _, apart = g.moments(input, axes, 0, True)
    return g.op("Div", apart, g.op("Sqrt", g.op("Add", variance, g.number(eps, input.dtype))))


@onnx("native_batch_norm")
def _(g, input, weight, bias, running_mean, running_var, training, eps):
    rank, channels = len(input.shape), input.shape[1]
    if training:
        axes = [0, *range(2, rank)]
        found = _standardized_as_onnx(g, input, axes, eps)
        if weight is not None:
            found = g.op("Mul", found, _on_channels(g, weight, rank))
        return [found if bias is None else g.op("Add", found, _on_channels(g, bias, rank)), None, None]
    ones, zeros = (g.initializer(cresset.full((channels,), v, dtype=running_mean.dtype)) for v in (1.0, 0.0))
    found = g.op(
        "BatchNormalization",
        input,
        ones if weight is None else weight,
        zeros if bias is None else bias,
        running_mean,
        running_var,
        epsilon=float(eps),
    )
    return [found, None, None]


@onnx("native_layer_norm")
def _(g, input, normalized_shape, weight, bias, eps):
    first, dtype = len(input.shape) - len(normalized_shape), input.dtype
    if g.opset >= 17 and weight is None:
        weight = g.initializer(cresset.ones(tuple(normalized_shape), dtype=dtype))
    if g.opset >= 17:
        return [g.op("LayerNormalization", input, weight, bias, axis=first, epsilon=float(eps)), None, None]
    found = _standardized_as_onnx(g, input, list(range(first, len(input.shape))), eps)
    found = found if weight is None else g.op("Mul", found, weight)
    return [found if bias is None else g.op("Add", found, bias), None, None]


@onnx("_rms_norm")
def _(g, input, normalized_shape, weight, eps):
    dtype, rank = input.dtype, len(input.shape)
    axes = list(range(rank - len(normalized_shape), rank))
    square = g.reduce("ReduceMean", g.op("Mul", input, input), axes)
    found = g.op("Div", input, g.op("Sqrt", g.op("Add", square, g.number(eps, dtype))))
    return [found if weight is None else g.op("Mul", found, weight), None]


@onnx("native_group_norm")
def _(g, input, weight, bias, C, group, eps):
    """Each group as a channel of instance normalization."""
    rank = len(input.shape)
    flat = g.reshape(input, [0, group, -1])
    ones, zeros = (g.initializer(cresset.full((group,), v, dtype=input.dtype)) for v in (1.0, 0.0))
    found = g.op("InstanceNormalization", flat, ones, zeros, epsilon=float(eps))
    found = g.reshape(found, input.shape)
    if weight is not None:
        found = g.op("Mul", found, _on_channels(g, weight, rank))
    return [found if bias is None else g.op("Add", found, _on_channels(g, bias, rank)), None, None]


# How they lie on several processes: words of distributed/tensor/words.py.
placement("native_layer_norm", "_rms_norm")("normalized")
placement("native_group_norm")("grouped")
placement("native_batch_norm")("batch_norm")
