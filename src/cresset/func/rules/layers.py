"""Normalisation and pooling."""

import cresset

from ..batching import rule, sample_by_sample
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


@rule("_normalize_backward")
def normalize_backward(call):
    """A weight for each sample is multiplied before. The gradients of weight and bias are sums over the leading dimensions, one for each sample."""
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


# ---- losses of classes: the batch joins the samples, whose losses are reduced afterwards

_NONE, _MEAN = 0, 1


def _joined(call, i):
    """Scores or classes of the samples of all calls; one call's scores may have no dimension of samples."""
    value = call.full(i)
    return value if call.rank(call.place("input")) == 1 else value.flatten(0, 1)


def _total_weights(call, first):
    """The sum of the weights of the classes that count, for each call."""
    target, weight, ignore_index = call.full(first + 1), call.args[first + 2], call.args[first + 4]
    counted = target != ignore_index
    weights = counted if weight is None else weight[target.masked_fill(~counted, 0).long()] * counted
    return weights.double().reshape(call.size, -1).sum(1)


@rule("_nll_loss", "_cross_entropy")
def class_loss(call):
    if call.dims[2] is not None:
        return sample_by_sample(call)
    _, _, weight, reduction, *others = call.args
    losses, _, *statistics = call.run(_joined(call, 0), _joined(call, 1).reshape(_target_shape(call)), weight, _NONE, *others)
    total = _total_weights(call, 0)
    if reduction == _NONE:
        losses = losses if call.rank() == 1 else losses.unflatten(0, (call.size, -1))
    else:
        losses = losses.reshape(call.size, -1).sum(1)
        losses = losses / total.to(losses.dtype) if reduction == _MEAN else losses
    return [losses, total, *(part.reshape(2, call.size, -1).movedim(1, 0) for part in statistics)]


def _target_shape(call):
    shape = _joined(call, call.place("input")).shape
    return (shape[0], *shape[2:])


@rule("_nll_loss_backward", "_cross_entropy_backward")
def class_loss_backward(call):
    if call.dims[3] is not None:
        return sample_by_sample(call)
    _, _, _, weight, reduction, *others = call.args
    total = call.place("total_weight")
    grad, shape = call.full(0), _target_shape(call)
    if reduction != _NONE:
        grad = grad / call.full(total).to(grad.dtype) if reduction == _MEAN else grad
        grad = grad.reshape(call.size, 1).expand(call.size, cresset.Size(shape).numel() // max(call.size, 1))
    statistics = [call.full(total + 1).movedim(0, 1).flatten(1)] if total + 1 < len(call.args) else []
    others = others[: total - 5]
    result = call.run(
        grad.reshape(shape), _joined(call, 1), _joined(call, 2).reshape(shape), weight, _NONE, *others, grad.new_ones((), dtype=cresset.float64), *statistics
    )
    return result if call.rank(1) == 1 else result.unflatten(0, (call.size, -1))


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

