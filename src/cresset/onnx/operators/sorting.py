"""Order: sorting, the k largest, places in a sorted row."""

import cresset

from . import exports

END = 2**63 - 1


def _top(g, x, count, axis, largest):
    return g.op("TopK", x, g.size(count), axis=axis, largest=int(largest), sorted=1, outputs=2)


@exports("topk")
def topk(g, input, k, dim, largest):
    return _top(g, input, k, dim % len(input.shape), largest)


@exports("sort")
def sort(g, input, dim, descending):
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    axis = dim % len(input.shape)
    wide = g.cast(input, input.dtype, cresset.int32) if input.dtype in (cresset.bool, cresset.uint8, cresset.int8, cresset.int16) else input
    values, places = _top(g, wide, input.shape[axis], axis, descending)
    return [g.cast(values, cresset.int32, input.dtype) if wide is not input else values, places]


@exports("kthvalue")
def kthvalue(g, input, k, dim, keepdim):
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    axis = dim % len(input.shape)
    found = [g.slice(x, axis, -1, END) for x in _top(g, input, k, axis, False)]  # the last of the k smallest
    return found if keepdim else [g.squeeze(x, [axis]) for x in found]


@exports("median")
def median(g, input, dim=None, keepdim=False):
    """The lower of the two in the middle."""
    if dim is None:
        flat, count = g.reshape(input, [-1]), 1
        for size in input.shape:
            count = size * count
        place = (count + 1) // 2
        return g.squeeze(g.slice(_top(g, flat, place, 0, False)[0], 0, -1, END), [0])
    return kthvalue(g, input, (input.shape[dim] + 1) // 2 if input.shape else 1, dim, keepdim)


@exports("searchsorted")
def searchsorted(g, sorted_sequence, input, right, side, sorter):
    if len(sorted_sequence.shape) != 1 or sorter is not None:
        raise g.unsupported("rows of their own, or a sorter")
    return _places(g, sorted_sequence, input, right or side == "right")


@exports("bucketize")
def bucketize(g, input, boundaries, right):
    return _places(g, boundaries, input, right)


def _places(g, row, input, right):
    """How many numbers of the row lie before each one."""
    dtype = cresset.promote_types(row.dtype, input.dtype)
    x = g.unsqueeze(g.cast(input, input.dtype, dtype), [len(input.shape)])
    before = g.op("LessOrEqual" if right else "Less", g.cast(row, row.dtype, dtype), x)
    count = g.reduce("ReduceSum", g.cast(before, cresset.bool, cresset.int64), [len(input.shape)], False)
    return g.cast(count, cresset.int64, g.result.dtype)
