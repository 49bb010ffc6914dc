"""Convolutions and pooling."""

import cresset

from ..dimensions import Size
from . import exports


def spread(values, rank):
    """One number for each spatial dimension."""
    values = list(values) if isinstance(values, (tuple, list)) else [values]
    return values * rank if len(values) == 1 else values


@exports("convolution")
def convolution(g, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(weight.shape) - 2
    dtype = g.result.dtype
    if not dtype.is_floating_point:
        raise g.unsupported(f"convolution of {dtype}; ONNX has that of floats")
    x, w, b = (None if t is None else g.cast(t, t.dtype, dtype) for t in (input, weight, bias))
    batched = len(input.shape) == rank + 2
    pads = spread(padding, rank) * 2
    attributes = {
        "kernel_shape": list(weight.shape[2:]), "strides": spread(stride, rank), "pads": pads, "dilations": spread(dilation, rank), "group": groups
    }
    if not batched:
        x = g.unsqueeze(x, [0])
    if transposed:
        found = g.op("ConvTranspose", x, w, b, output_padding=spread(output_padding, rank), **attributes)
    else:
        found = g.op("Conv", x, w, b, **attributes)
    return found if batched else g.squeeze(found, [0])


def pooled(g, kind, x, input, rank, outputs=1, **attributes):
    """Pool over the last `rank` dimensions; ONNX wants a batch."""
    batched = len(input.shape) == rank + 2
    if not batched:
        x = g.unsqueeze(x, [0])
    found = g.op(kind, x, outputs=outputs, **attributes)
    found = [found] if outputs == 1 else found
    return found if batched else [g.squeeze(f, [0]) for f in found]


def _max_pool(rank):
    def rule(g, input, kernel_size, stride, padding, dilation, ceil_mode):
        x = g.cast(input, input.dtype, cresset.float32) if not input.dtype.is_floating_point else g.name(input)
        settings = {
            "kernel_shape": spread(kernel_size, rank), "strides": spread(stride or kernel_size, rank), "pads": spread(padding, rank) * 2,
            "dilations": spread(dilation, rank), "ceil_mode": int(ceil_mode),
        }  # fmt: skip
        values, places = pooled(g, "MaxPool", x, input, rank, outputs=2, **settings)
        if not input.dtype.is_floating_point:
            values = g.cast(values, cresset.float32, input.dtype)
        # ONNX counts places in the whole tensor, the operator in the plane of each channel.
        plane = input.shape[-1]
        for size in input.shape[-rank:-1]:
            plane = size * plane
        return [values, g.op("Mod", places, g.number(plane, cresset.int64))]

    return rule


def _avg_pool(rank):
    def rule(g, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        if not input.dtype.is_floating_point:
            raise g.unsupported(f"means of {input.dtype}")
        if divisor_override is not None:
            raise g.unsupported("divisor_override")
        if ceil_mode and g.opset < 19:
            raise g.unsupported(f"ceil_mode=True divides by another count in opset {g.opset}; opset 19 agrees")
        return pooled(
            g, "AveragePool", g.name(input), input, rank, kernel_shape=spread(kernel_size, rank), strides=spread(stride or kernel_size, rank),
            pads=spread(padding, rank) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )[0]  # fmt: skip

    return rule


def _by_windows(g, input, sizes, wanted, kind):
    """Windows that differ in size, one dimension after the other."""
    x, first = g.name(input), len(input.shape) - len(sizes)
    for axis, (size, count) in enumerate(zip(sizes, wanted, strict=True), first):
        reduction = "ReduceMean" if kind == "AveragePool" else "ReduceMax"
        windows = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        x = g.op("Concat", *(g.reduce(reduction, g.slice(x, axis, a, b), [axis]) for a, b in windows), axis=axis)
    return x


def _adaptive(rank, kind):
    def rule(g, input, output_size):
        sizes, wanted = input.shape[-rank:], spread(output_size, rank)
        wanted = [s if w is None else w for s, w in zip(sizes, wanted, strict=True)]
        if all(w == 1 for w in wanted):
            return [pooled(g, f"Global{kind}", g.name(input), input, rank)[0], None][: len(g.call.results)]
        if list(sizes) == wanted:
            return [input, None][: len(g.call.results)]
        if any(isinstance(s, Size) or isinstance(w, Size) for s, w in zip(sizes, wanted, strict=True)):
            raise g.unsupported("pooling a free dimension to a fixed size other than 1, or to a free one")
        if any(s % w for s, w in zip(sizes, wanted, strict=True)):
            return [_by_windows(g, input, sizes, wanted, kind), None][: len(g.call.results)]
        steps = [s // w for s, w in zip(sizes, wanted, strict=True)]
        return [pooled(g, kind, g.name(input), input, rank, kernel_shape=steps, strides=steps)[0], None][: len(g.call.results)]

    return rule


@exports("_max_unpool")
def max_unpool(g, values, indices, output_size, rank):
    """Each value at its place in the plane of its channel, zeros elsewhere."""
    lead, plane = list(g.result.shape[: len(g.result.shape) - rank]), 1
    for size in g.result.shape[len(lead) :]:
        plane = size * plane
    zeros = g.op("Expand", g.number(0, values.dtype), g.sizes([*lead, plane]))
    flat = [g.reshape(t, [*lead, -1], values.shape) for t in (values, indices)]
    return g.reshape(g.op("ScatterElements", zeros, flat[1], flat[0], axis=len(lead)), g.result.shape)


for _rank in (1, 2, 3):
    exports(f"_max_pool{_rank}d")(_max_pool(_rank))
    exports(f"_avg_pool{_rank}d")(_avg_pool(_rank))
    exports(f"_adaptive_avg_pool{_rank}d")(_adaptive(_rank, "AveragePool"))
    exports(f"_adaptive_max_pool{_rank}d")(_adaptive(_rank, "MaxPool"))
