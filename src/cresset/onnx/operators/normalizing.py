"""Batch, layer, group and root-mean-square normalization."""

import cresset

from . import exports
from .reducing import moments


def _on_channels(g, vector, rank):
    """A vector of one number a channel, so that it broadcasts over a batch (N, C, ...)."""
    return g.op("Unsqueeze", vector, g.ints([0, *range(2, rank)])) if rank != 1 else vector


def _standardized(g, input, axes, eps):
    """Mean zero and variance one along axes."""
    variance, _, apart = moments(g, input, axes, 0, True)
    return g.op("Div", apart, g.op("Sqrt", g.op("Add", variance, g.number(eps, input.dtype))))


@exports("native_batch_norm")
def batch_norm(g, input, weight, bias, running_mean, running_var, training, eps):
    rank, channels = len(input.shape), input.shape[1]
    if training:
        axes = [0, *range(2, rank)]
        found = _standardized(g, input, axes, eps)
        if weight is not None:
            found = g.op("Mul", found, _on_channels(g, weight, rank))
        return [found if bias is None else g.op("Add", found, _on_channels(g, bias, rank)), None, None]
    ones, zeros = (g.initializer(cresset.full((channels,), v, dtype=running_mean.dtype)) for v in (1.0, 0.0))
    found = g.op("BatchNormalization", input, ones if weight is None else weight, zeros if bias is None else bias, running_mean, running_var, epsilon=float(eps))
    return [found, None, None]


@exports("native_layer_norm")
def layer_norm(g, input, normalized_shape, weight, bias, eps):
    first, dtype = len(input.shape) - len(normalized_shape), input.dtype
    if g.opset >= 17 and weight is None:
        weight = g.initializer(cresset.ones(tuple(normalized_shape), dtype=dtype))
    if g.opset >= 17:
        return [g.op("LayerNormalization", input, weight, bias, axis=first, epsilon=float(eps)), None, None]
    found = _standardized(g, input, list(range(first, len(input.shape))), eps)
    found = found if weight is None else g.op("Mul", found, weight)
    return [found if bias is None else g.op("Add", found, bias), None, None]


@exports("_rms_norm")
def rms_norm(g, input, normalized_shape, weight, eps):
    dtype, rank = input.dtype, len(input.shape)
    axes = list(range(rank - len(normalized_shape), rank))
    square = g.reduce("ReduceMean", g.op("Mul", input, input), axes)
    found = g.op("Div", input, g.op("Sqrt", g.op("Add", square, g.number(eps, dtype))))
    return [found if weight is None else g.op("Mul", found, weight), None]


@exports("native_group_norm")
def group_norm(g, input, weight, bias, C, group, eps):
    """Each group as a channel of instance normalization."""
    rank = len(input.shape)
    flat = g.reshape(input, [0, group, -1])
    ones, zeros = (g.initializer(cresset.full((group,), v, dtype=input.dtype)) for v in (1.0, 0.0))
    found = g.op("InstanceNormalization", flat, ones, zeros, epsilon=float(eps))
    found = g.reshape(found, input.shape)
    if weight is not None:
        found = g.op("Mul", found, _on_channels(g, weight, rank))
    return [found if bias is None else g.op("Add", found, _on_channels(g, bias, rank)), None, None]
