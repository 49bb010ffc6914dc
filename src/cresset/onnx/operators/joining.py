"""Tensors joined, repeated and shifted."""

import cresset

from . import exports


@exports("cat")
def cat(g, tensors, dim):
    dtype = g.result.dtype
    kept = [t for t in tensors if t.shape != (0,)]  # such a one joins any shape
    return g.op("Concat", *(g.cast(t, t.dtype, dtype) for t in kept), axis=dim % len(g.result.shape))


@exports("stack")
def stack(g, tensors, dim):
    axis, dtype = dim % len(g.result.shape), g.result.dtype
    return g.op("Concat", *(g.unsqueeze(g.cast(t, t.dtype, dtype), [axis]) for t in tensors), axis=axis)


@exports("repeat")
def repeat(g, input, repeats):
    missing = len(repeats) - len(input.shape)
    return g.op("Tile", g.unsqueeze(input, list(range(missing))), g.sizes(repeats))


@exports("flip")
def flip(g, input, dims):
    axes = [d % len(input.shape) for d in dims]
    if not axes:
        return input
    count = len(axes)
    return g.op("Slice", input, g.ints([-1] * count), g.ints([-(2**63) + 1] * count), g.ints(axes), g.ints([-1] * count))


@exports("roll")
def roll(g, input, shifts, dims):
    shifts = [shifts] if not isinstance(shifts, (tuple, list)) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    if not dims:
        return g.reshape(_roll(g, g.reshape(input, [-1]), 0, shifts[0]), input.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        input = _roll(g, input, dim % len(g.result.shape), shift)
    return input


def _roll(g, x, axis, shift):
    end = 2**63 - 1
    return g.op("Concat", g.slice(x, axis, -shift, end), g.slice(x, axis, 0, -shift), axis=axis) if shift != 0 else x


@exports("bincount")
def bincount(g, input, weights, minlength):
    if g.result.shape != (minlength,):
        raise g.unsupported("the number of counts depends on the elements; give minlength")
    row = g.op("Range", g.number(0, cresset.int64), g.number(minlength, cresset.int64), g.number(1, cresset.int64))
    hits = g.cast(g.op("Equal", g.unsqueeze(g.cast(input, input.dtype, cresset.int64), [1]), row), cresset.bool, g.result.dtype)
    if weights is not None:
        hits = g.op("Mul", hits, g.unsqueeze(g.cast(weights, weights.dtype, g.result.dtype), [1]))
    return g.reduce("ReduceSum", hits, [0], False)


@exports("repeat_positions")
def repeat_positions(g, repeats):
    """The index of each element, as often as `repeats` says: searching the running totals."""
    totals = g.op("CumSum", g.cast(repeats, repeats.dtype, cresset.int64), g.number(0, cresset.int64))
    count = g.op("ReduceMax", totals, keepdims=0)
    places = g.unsqueeze(g.op("Range", g.number(0, cresset.int64), count, g.number(1, cresset.int64)), [1])
    passed = g.op("LessOrEqual", g.unsqueeze(totals, [0]), places)
    return g.reduce("ReduceSum", g.op("Cast", passed, to=7), [1], keepdims=False)
