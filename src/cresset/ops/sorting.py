"""Sorting and selecting along a dimension: documentation, derivatives, and functions made of `sort` and `nonzero`."""

import cresset

from .indexing import onto_zeros
from .registry import batch, function, onnx, operator, placement

sort = operator("sort", """The elements along `dim` in increasing (or decreasing) order, and their indices.

    A nan counts as larger than any other number. Equal elements keep their order, whether or not `stable` is asked for.

    >>> values, indices = cresset.sort(cresset.tensor([30, 10, 20]))
    >>> values, indices
    (tensor([10, 20, 30]), tensor([1, 2, 0]))
    """)  # fmt: skip

topk = operator("topk", """The `k` largest (or smallest) elements along `dim`, and their indices.

    Args:
        largest: False: the smallest.
        sorted: whether the result has to be in order.

    >>> values, indices = cresset.topk(cresset.tensor([10, 30, 20]), 2)
    >>> values, indices
    (tensor([30, 20]), tensor([1, 2]))
    """)  # fmt: skip


@sort.derivative
@topk.derivative
def _(grad, input_info, dim, indices):
    yield lambda: onto_zeros("scatter", input_info, grad, dim, indices, grad)


kthvalue = operator("kthvalue", """The `k`-th smallest element along `dim`, and its index; k counts from 1.

    >>> values, indices = cresset.kthvalue(cresset.tensor([30, 10, 20]), 2)
    >>> values, indices
    (tensor(20), tensor(2))
    """)  # fmt: skip

median = operator("median", """The median of all elements, or the medians along `dim` and their indices.

    Of an even number of elements it is the lower of the two middle ones. A nan makes the median nan.

    >>> cresset.median(cresset.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """)  # fmt: skip
median_dim = operator("median.dim")

nanmedian = operator("nanmedian", """The median of the elements that are not nan; see `median`.

    >>> cresset.nanmedian(cresset.tensor([3.0, float("nan"), 1.0, 2.0]))
    tensor(2.)
    """)  # fmt: skip
nanmedian_dim = operator("nanmedian.dim")

mode = operator("mode", """The most frequent element along `dim`, and an index of it; the smallest, if there are
    several.

    >>> values, indices = cresset.mode(cresset.tensor([2, 1, 2]))
    >>> values, indices
    (tensor(2), tensor(2))
    """)  # fmt: skip


@kthvalue.derivative
@median_dim.derivative
@nanmedian_dim.derivative
@mode.derivative
def _(grad, input_info, dim, keepdim, indices):
    def back():
        whole = keepdim or not input_info.shape
        at, amount = (indices, grad) if whole else (indices.unsqueeze(dim), grad.unsqueeze(dim))
        return onto_zeros("scatter", input_info, grad, dim, at, amount)

    yield back


@median.derivative
@nanmedian.derivative
def _(grad, input, output):
    # The gradient is shared evenly by the elements that are equal to the median.
    def back():
        equal = input == output
        if input.is_floating_point():
            equal = equal | (input.isnan() & output.isnan())
        return cresset.where(equal, grad / equal.sum(), 0)

    yield back


@function(method=True)
def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that sort along `dim`.

    >>> cresset.argsort(cresset.tensor([30, 10, 20]))
    tensor([1, 2, 0])
    """
    return cresset.sort(input.detach(), dim=dim, descending=descending, stable=stable)[1]


@function(method=True, out=True)
def msort(input):
    """The elements sorted along the first dimension.

    >>> cresset.msort(cresset.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return input.sort(0)[0]


@function(method=True)
def argwhere(input):
    """The indices of the elements that are not zero, one row for each.

    >>> cresset.argwhere(cresset.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return input.nonzero()


@function(method=True, out=True)
def nonzero_static(input, *, size, fill_value=-1):
    """`nonzero` with a number of rows that is known beforehand: cut off, or filled up with `fill_value`.

    >>> cresset.nonzero_static(cresset.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = input.nonzero()[:size]
    return cresset.cat([found, found.new_full((size - found.size(0), input.ndim), fill_value)])


batch("sort", "topk", "kthvalue", "mode")("along")


# --- as ONNX ---

_END = 2**63 - 1


def _top(g, x, count, axis, largest):
    return g.op("TopK", x, g.size(count), axis=axis, largest=int(largest), sorted=1, outputs=2)


@onnx("topk")
def _(g, input, k, dim, largest):
    return _top(g, input, k, dim % len(input.shape), largest)


@onnx("sort")
def _(g, input, dim, descending):
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    axis = dim % len(input.shape)
    wide = (
        g.cast(input, input.dtype, cresset.int32)
        if input.dtype in (cresset.bool, cresset.uint8, cresset.int8, cresset.int16)
        else input
    )
    values, places = _top(g, wide, input.shape[axis], axis, descending)
    return [g.cast(values, cresset.int32, input.dtype) if wide is not input else values, places]


@onnx("kthvalue")
def _kth_as_onnx(g, input, k, dim, keepdim):
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    axis = dim % len(input.shape)
    found = [g.slice(x, axis, -1, _END) for x in _top(g, input, k, axis, False)]  # the last of the k smallest
    return found if keepdim else [g.squeeze(x, [axis]) for x in found]


@onnx("median")
def _(g, input, dim=None, keepdim=False):
    """The lower of the two in the middle."""
    if dim is None:
        flat, count = g.reshape(input, [-1]), 1
        for size in input.shape:
            count = size * count
        place = (count + 1) // 2
        return g.squeeze(g.slice(_top(g, flat, place, 0, False)[0], 0, -1, _END), [0])
    return _kth_as_onnx(g, input, (input.shape[dim] + 1) // 2 if input.shape else 1, dim, keepdim)


# How they lie on several processes: words of distributed/tensor/words.py.
placement("median", "nanmedian")("reduced")
placement("sort", "topk", "kthvalue", "mode")("along")
