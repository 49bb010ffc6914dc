"""Shapes and the order of dimensions, and dtypes: operators that move no numbers or only convert them."""

import math

import cresset

from ..dimensions import Size
from . import exports


@exports("view", "reshape")
def reshape(g, input, size=None, shape=None, dtype=None):
    wanted = shape if size is None else size
    if wanted is None:
        raise g.unsupported("the elements of a tensor cannot be read as another dtype")
    return g.reshape(input, _whole(g, wanted), input.shape)


def _whole(g, sizes):
    """The sizes, in which a -1 is the known size of the result if that makes the shape plainer."""
    sizes = list(sizes)
    if -1 in [s for s in sizes if isinstance(s, int)] and any(isinstance(s, Size) for s in sizes):
        return g.result.shape
    return sizes


@exports("expand")
def expand(g, input, size):
    sizes = list(size)
    first = len(sizes) - len(input.shape)
    for k, s in enumerate(sizes):
        if isinstance(s, int) and s == -1 or k >= first and s == input.shape[k - first]:
            sizes[k] = 1  # Expand broadcasts
    return g.op("Expand", input, g.sizes(sizes))


@exports("transpose")
def transpose(g, input, dim0, dim1):
    order = list(range(len(input.shape)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.transpose(input, order)


@exports("t")
def t(g, input):
    return g.transpose(input, range(len(input.shape))[::-1])


@exports("permute")
def permute(g, input, dims):
    return g.transpose(input, [d % len(input.shape) for d in dims])


@exports("unsqueeze")
def unsqueeze(g, input, dim):
    return g.unsqueeze(input, [dim % (len(input.shape) + 1)])


@exports("squeeze")
def squeeze(g, input, dim=None):
    rank = len(input.shape)
    dims = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    return g.squeeze(input, [d % rank for d in dims if rank and input.shape[d] == 1])


@exports("alias", "detach", "clone", "contiguous", "cpu", "real")
def same(g, input):
    if input.dtype.is_complex:
        raise g.unsupported("complex numbers")
    return input


@exports("to", "to_dtype", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool")
def to(g, input):
    return g.cast(input, input.dtype, g.result.dtype)


@exports("select")
def select(g, input, dim, index):
    return g.op("Gather", input, g.number(index, cresset.int64), axis=dim % len(input.shape))


@exports("slice")
def slice_(g, input, dim, start, end, step):
    return g.slice(input, dim % len(input.shape), 0 if start is None else start, 2**63 - 1 if end is None else end, step)


@exports("narrow")
def narrow(g, input, dim, start, length):
    return g.slice(input, dim % len(input.shape), start, start + length)


@exports("unbind")
def unbind(g, input, dim):
    axis = dim % len(input.shape)
    return [g.op("Gather", input, g.number(k, cresset.int64), axis=axis) for k in range(len(g.call.results))]


@exports("chunk", "split", "split_with_sizes")
def split(g, input, dim):
    axis = dim % len(input.shape)
    sizes = [value.shape[axis] for value in g.call.results]
    if len(sizes) == 1:
        return [input]
    return g.op("Split", input, g.sizes(sizes), axis=axis, outputs=len(sizes))


@exports("diagonal")
def diagonal(g, input, offset, dim1, dim2):
    shape = input.shape
    dim1, dim2 = dim1 % len(shape), dim2 % len(shape)
    if any(isinstance(shape[d], Size) for d in (dim1, dim2)):
        raise g.unsupported("the diagonal of dimensions that are free")
    order = [d for d in range(len(shape)) if d not in (dim1, dim2)] + [dim1, dim2]
    rows, columns = shape[dim1], shape[dim2]
    places = [r * columns + r + offset for r in range(rows) if 0 <= r + offset < columns]
    flat = g.reshape(g.transpose(input, order), [*(shape[d] for d in order[:-2]), rows * columns])
    return g.op("Gather", flat, g.ints(places), axis=len(shape) - 2)


@exports("unfold")
def unfold(g, input, dimension, size, step):
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    axis = dimension % len(input.shape)
    if isinstance(input.shape[axis], Size):
        raise g.unsupported("windows along a dimension that is free")
    count = (input.shape[axis] - size) // step + 1
    places = cresset.arange(count).mul(step).unsqueeze(1) + cresset.arange(size)
    windows = g.op("Gather", input, g.initializer(places), axis=axis)  # (..., count, size, ...)
    rank = len(input.shape) + 1
    return g.transpose(windows, [d for d in range(rank) if d != axis + 1] + [axis + 1])


@exports("as_strided")
def as_strided(g, input, size, stride, storage_offset):
    if any(isinstance(s, Size) for s in (*size, *stride, *input.shape)):
        raise g.unsupported("strides of a tensor whose dimensions are free")
    places = cresset.arange(math.prod(input.shape)).as_strided(tuple(size), tuple(stride), storage_offset or 0)
    return g.op("Gather", g.reshape(input, [-1]), g.initializer(places.contiguous()), axis=0)
