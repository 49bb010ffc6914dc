"""New tensors whose shape is free. Those of a fixed shape never come here: they are constants."""

import cresset

from ..dimensions import Size
from . import exports


def filled(g, shape, value):
    dtype = g.result.dtype
    if not shape:
        return g.number(value, dtype)
    return g.op("Expand", g.number(value, dtype), g.sizes(shape))


@exports("zeros", "empty", "new_zeros", "new_empty", "zeros_like", "empty_like")
def zeros(g):
    return filled(g, g.result.shape, 0)


@exports("ones", "new_ones", "ones_like")
def ones(g):
    return filled(g, g.result.shape, 1)


@exports("full", "new_full", "full_like")
def full(g, fill_value):
    return filled(g, g.result.shape, fill_value)


@exports("scalar_tensor")
def scalar_tensor(g, s):
    return g.number(s, g.result.dtype)


@exports("arange")
def arange(g, end, start=0, step=1):
    dtype = g.result.dtype
    wide = cresset.int64 if not dtype.is_floating_point else cresset.float32 if dtype in (cresset.float16, cresset.bfloat16) else dtype
    start = 0 if start is None else start
    found = g.op("Range", g.number(start, wide), g.number(end, wide), g.number(1 if step is None else step, wide))
    return g.cast(found, wide, dtype)


@exports("linspace")
def linspace(g, start, end, steps):
    dtype = g.result.dtype
    places = g.op("Range", g.number(0, cresset.int64), g.number(steps, cresset.int64), g.number(1, cresset.int64))
    width = g.op("Sub", g.number(end, dtype), g.number(start, dtype))
    intervals = g.number(steps - 1 if steps != 1 else 1, dtype)
    return g.op("Add", g.number(start, dtype), g.op("Div", g.op("Mul", g.cast(places, cresset.int64, dtype), width), intervals))


@exports("eye")
def eye(g, n, m):
    shape = g.sizes([n, n if m is None else m])
    zeros = g.op("Expand", g.number(0.0, cresset.float32), shape)
    return g.cast(g.op("EyeLike", zeros), cresset.float32, g.result.dtype)


@exports("tril", "triu")
def triangle(g, input, diagonal):
    upper = int(g.call.name == "triu")
    if input.dtype is cresset.bool:  # runtimes have it for numbers
        found = g.op("Trilu", g.cast(input, cresset.bool, cresset.int64), g.number(diagonal, cresset.int64), upper=upper)
        return g.cast(found, cresset.int64, cresset.bool)
    return g.op("Trilu", input, g.number(diagonal, cresset.int64), upper=upper)


def _random(kind, **attributes):
    def rule(g):
        shape = g.result.shape
        dtype = 1 if g.result.dtype is not cresset.float64 else 11
        if any(isinstance(s, Size) for s in shape):
            found = g.op(kind + "Like", g.op("Expand", g.number(0.0, cresset.float32), g.sizes(shape)), dtype=dtype, **attributes)
        else:
            found = g.op(kind, shape=list(shape), dtype=dtype, **attributes)
        return g.cast(found, cresset.float64 if dtype == 11 else cresset.float32, g.result.dtype)

    return rule


exports("rand", "rand_like")(_random("RandomUniform", low=0.0, high=1.0))
exports("randn", "randn_like")(_random("RandomNormal", mean=0.0, scale=1.0))


@exports("_fused_dropout")
def fused_dropout(g, input, p):
    """`p` is the probability to stay. The file drops while it runs, too: that is what a model in training mode does."""
    return g.op("Dropout", input, g.number(1 - p, cresset.float32), g.number(True, cresset.bool), outputs=2)
