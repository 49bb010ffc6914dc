"""Sums, means, extremes and other reductions, and running ones."""

import math

import cresset

from ..dimensions import Size
from . import exports
from .pointwise import maximum, minimum


def axes_of(input, dim):
    """The reduced dimensions, all of them if none is named; empty for a tensor without dimensions."""
    rank = len(input.shape)
    if dim is None or dim == () or dim == []:
        return list(range(rank))
    return [d % rank for d in ([dim] if isinstance(dim, int) else dim)] if rank else []


def reduced(g, kind, input, dim, keepdim, dtype=None):
    dtype = dtype or g.result.dtype
    axes = axes_of(input, dim)
    x = g.cast(input, input.dtype, dtype)
    if not axes:
        return x
    if dtype is cresset.bool:
        return g.cast(g.reduce(kind, g.cast(x, dtype, cresset.int32), axes, keepdim), cresset.int32, dtype)
    return g.reduce(kind, x, axes, keepdim)


@exports("sum")
def sum(g, input, dim=None, keepdim=False):
    return reduced(g, "ReduceSum", input, dim, keepdim)


@exports("mean")
def mean(g, input, dim=None, keepdim=False):
    return reduced(g, "ReduceMean", input, dim, keepdim)


@exports("prod")
def prod(g, input, dim=None, keepdim=False):
    return reduced(g, "ReduceProd", input, dim, keepdim)


@exports("amax")
def amax(g, input, dim, keepdim):
    return reduced(g, "ReduceMax", input, dim, keepdim)


@exports("amin")
def amin(g, input, dim, keepdim):
    return reduced(g, "ReduceMin", input, dim, keepdim)


@exports("aminmax")
def aminmax(g, input, dim, keepdim):
    return [reduced(g, kind, input, dim, keepdim) for kind in ("ReduceMin", "ReduceMax")]


@exports("max", "min")
def extreme(g, input, dim=None, keepdim=False, other=None):
    kind = "Max" if g.call.name == "max" else "Min"
    if other is not None:
        return (maximum if kind == "Max" else minimum)(g, input, other)
    if dim is None:
        return reduced(g, "Reduce" + kind, input, None, False)
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    return [reduced(g, "Reduce" + kind, input, dim, keepdim), _place(g, "Arg" + kind, input, dim, keepdim)]


def _place(g, kind, input, dim, keepdim):
    dtype = input.dtype if input.dtype in (cresset.float32, cresset.float64, cresset.int32, cresset.int64) else cresset.float32
    return g.op(kind, g.cast(input, input.dtype, dtype), axis=dim % len(input.shape), keepdims=int(keepdim))


@exports("argmax", "argmin")
def argument(g, input, dim, keepdim):
    kind = "ArgMax" if g.call.name == "argmax" else "ArgMin"
    if not input.shape:
        return g.number(0, cresset.int64)
    if dim is None:
        flat = g.reshape(g.cast(input, input.dtype, cresset.float32) if input.dtype is cresset.bool else input, [-1])
        found = g.op(kind, flat, axis=0, keepdims=0)
        return g.reshape(found, [1] * len(input.shape)) if keepdim else found
    return _place(g, kind, input, dim, keepdim)


@exports("all", "any")
def truth(g, input, dim=None, keepdim=False):
    counted = g.cast(g.cast(input, input.dtype, cresset.bool), cresset.bool, cresset.int32)
    axes = axes_of(input, dim)
    if axes:
        counted = g.reduce("ReduceMin" if g.call.name == "all" else "ReduceMax", counted, axes, keepdim)
    return g.cast(counted, cresset.int32, g.result.dtype)


@exports("count_nonzero")
def count_nonzero(g, input, dim):
    ones = g.cast(g.cast(input, input.dtype, cresset.bool), cresset.bool, cresset.int64)
    return g.reduce("ReduceSum", ones, axes_of(input, dim), False) if input.shape else ones


@exports("logsumexp")
def logsumexp(g, input, dim, keepdim):
    return reduced(g, "ReduceLogSumExp", input, dim, keepdim)


@exports("nansum")
def nansum(g, input, dim, keepdim):
    if not input.dtype.is_floating_point:
        return reduced(g, "ReduceSum", input, dim, keepdim)
    clean = g.op("Where", g.op("IsNaN", input), g.number(0.0, input.dtype), input)
    return g.reduce("ReduceSum", clean, axes_of(input, dim), keepdim) if input.shape else clean


@exports("linalg_vector_norm")
def vector_norm(g, input, ord, dim, keepdim):
    dtype = g.result.dtype
    axes = axes_of(input, dim)
    x = g.cast(input, input.dtype, dtype)
    if not axes:
        return g.op("Abs", x) if ord != 0 else g.op("Sign", g.op("Abs", x))
    if ord in (1, 2):
        return g.reduce("ReduceL1" if ord == 1 else "ReduceL2", x, axes, keepdim)
    size = g.op("Abs", x)
    if ord in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", size, axes, keepdim)
    if ord == 0:
        return g.reduce("ReduceSum", g.op("Sign", size), axes, keepdim)
    total = g.reduce("ReduceSum", g.op("Pow", size, g.number(float(ord), dtype)), axes, keepdim)
    return g.op("Pow", total, g.number(1 / float(ord), dtype))


def moments(g, input, axes, correction, keepdim):
    """The variance (the sum of squares divided by the count less `correction`), the mean along axes, and how far each element is from it."""
    dtype = input.dtype
    center = g.reduce("ReduceMean", input, axes)
    apart = g.op("Sub", input, center)
    squares = g.op("Mul", apart, apart)
    if correction == 0:
        variance = g.reduce("ReduceMean", squares, axes, keepdim)
    else:
        count = 1
        for axis in axes:
            count = input.shape[axis] * count
        total = g.reduce("ReduceSum", squares, axes, keepdim)
        variance = g.op("Div", total, g.number(count - correction if isinstance(count, Size) else float(count - correction), dtype))
    return variance, center if keepdim else g.squeeze(center, axes), apart


@exports("var", "std", "var_mean", "std_mean")
def spread(g, input, dim=None, correction=None, unbiased=True, keepdim=False):
    axes = axes_of(input, dim)
    correction = (1 if unbiased else 0) if correction is None else correction
    variance, center, _ = moments(g, input, axes, correction, keepdim)
    found = g.op("Sqrt", variance) if g.call.name.startswith("std") else variance
    return [found, center] if g.call.name.endswith("_mean") else found
