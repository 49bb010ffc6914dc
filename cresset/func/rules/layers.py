"""Normalisation and pooling."""

import cresset

from ..batching import decomposed, rule
from .products import _in_channels, _out_of_channels


def _channels(call, i):
    """A vector for each channel, for the channels of all samples; None stays None."""
    return None if call.args[i] is None else call.full(i).flatten()


@rule("native_batch_norm")
def batch_norm(call):
    """The channels of every sample are channels of one call."""
    training, momentum, eps = call.args[5:]
    for i in (3, 4):
        if training and call.args[i] is not None and call.dims[i] is None:
            raise RuntimeError(
                "batch_norm: Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
                "batched. Inside vmap, use eval() mode, track_running_stats=False, or torch.func.replace_all_batch_norm_modules_"
            )
    output, *statistics = call.run(_in_channels(call.full(0)), *(_channels(call, i) for i in range(1, 5)), training, momentum, eps)
    return [_out_of_channels(output, call.size), *(_per_sample(part, call.size) for part in statistics)]


def _per_sample(vector, size):
    return vector.unflatten(0, (size, -1)) if vector.numel() else vector.reshape(size, -1)


@rule("_batch_norm_backward")
def batch_norm_backward(call):
    grad, input = _in_channels(call.full(0)), _in_channels(call.full(1))
    to_input, *to_weights = call.run(grad, input, *(_channels(call, i) for i in (2, 3, 4)), call.args[5])
    return [_out_of_channels(to_input, call.size), *(_per_sample(part, call.size) for part in to_weights)]


@rule("native_group_norm")
def group_norm(call):
    count, channels, pixels, groups, eps = call.args[3:]
    output, *statistics = call.run(
        _in_channels(call.full(0)), _channels(call, 1), _channels(call, 2), count, channels * call.size, pixels, groups * call.size, eps
    )
    return [_out_of_channels(part, call.size) for part in (output, *statistics)]


@rule("_group_norm_backward")
def group_norm_backward(call):
    count, channels, pixels, groups = call.args[5:]
    grad, input, mean, rstd = (_in_channels(call.full(i)) for i in range(4))
    to_input, *to_weights = call.run(grad, input, mean, rstd, _channels(call, 4), count, channels * call.size, pixels, groups * call.size)
    return [_out_of_channels(to_input, call.size), *(_per_sample(part, call.size) for part in to_weights)]


@rule("native_layer_norm", "_rms_norm")
def layer_norm(call):
    """Leading dimensions are free. A weight for each sample is applied afterwards."""
    input, shape, *weights, eps = call.args
    if all(dim is None for dim in call.dims[2:]):
        return call.run(call.front(), shape, *weights, eps)
    output, *statistics = call.run(call.full(0), shape, *[None] * len(weights), eps)
    for i, combine in zip((2, 3), (cresset.mul, cresset.add), strict=False):
        if i < 2 + len(weights) and call.args[i] is not None:
            output = combine(output, call.padded(i, call.rank()))
    return [output, *statistics]


@rule("_normalize_backward_input")
def normalize_backward(call):
    grad, _, shape, mean, _, weight = call.args
    grad, weight = call.full(0), weight
    if call.dims[5] is not None:
        grad, weight = grad * call.padded(5, call.rank()), None
    return call.run(grad, call.full(1), shape, None if mean is None else call.full(3), call.full(4), weight)


@rule("_normalize_backward_weight")
def normalize_backward_weight(call):
    """The sums over the leading dimensions of grad times the normalised input, and of grad."""

    def summed(grad, input, shape, mean, rstd):
        normalized = (input if mean is None else input - mean.reshape(rstd.shape)) * rstd
        leading = tuple(range(input.dim() - len(shape)))
        parts = (grad * normalized, grad)
        return [part.sum(leading) if leading else part for part in parts]

    return decomposed(summed)(call)


# ---- pooling: the batch joins the images

_SPATIAL = {f"_{kind}{n}d": n for n in (1, 2, 3) for kind in ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool")}


@rule(*_SPATIAL)
def pool(call):
    value = call.front()
    if call.rank() == _SPATIAL[call.name] + 1:
        return call.run(value, *call.args[1:])
    return _split(call.run(value.flatten(0, 1), *call.args[1:]), call.size)


def _split(result, size):
    if isinstance(result, (tuple, list)):
        return [_split(part, size) for part in result]
    return result.unflatten(0, (size, -1))


@rule("_avg_pool_gradient", "_adaptive_avg_pool_gradient", "_max_pool_gradient", "_max_unpool")
def pool_gradient(call):
    tensors = 2 if call.name.startswith("_max") else 1
    sizes = call.args[tensors]
    spatial = call.args[-1] if call.place("rank") is not None else len(call.args[2])
    values = [call.full(i) for i in range(tensors)]
    # The sizes may leave out the images and channels.
    if call.rank() == spatial + 1:
        return call.run(*values, _with_lead(sizes, values[0].shape[:2], spatial), *call.args[tensors + 1 :])
    values = [value.flatten(0, 1) for value in values]
    return call.run(*values, _with_lead(sizes, values[0].shape[:2], spatial), *call.args[tensors + 1 :]).unflatten(0, (call.size, -1))


def _with_lead(sizes, lead, spatial):
    return sizes if len(sizes) == spatial else (*lead, *sizes[len(sizes) - spatial :])

