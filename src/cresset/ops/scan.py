"""Scans: documentation and derivatives of cumulative sums, products, extremes and log-sum-exps."""

import math

import cresset

from .batches import all_samples
from .registry import batch, onnx, operator, placement

cumsum = operator("cumsum", """The sum of the elements so far along `dim`. Integers and bool are summed in int64.

    >>> cresset.cumsum(cresset.tensor([1, 2, 3]), dim=0)
    tensor([1, 3, 6])
    """, autocast={"cuda": "accumulate"}, batch="along", casts_out=True)  # fmt: skip


@cumsum.derivative
def _(grad, dim):
    yield lambda: _from_the_end(cresset.cumsum, grad, dim) if grad.ndim else grad


def _from_the_end(scan, x, dim):
    return scan(x.flip(dim), dim).flip(dim)


@cumsum.onnx
def _(g, input, dim):
    x = g.cast(input, input.dtype, g.result.dtype)
    return g.op("CumSum", x, g.number(dim % len(input.shape), cresset.int64)) if input.shape else x


cumprod = operator("cumprod", """The product of the elements so far along `dim`.

    >>> cresset.cumprod(cresset.tensor([1, 2, 3]), dim=0)
    tensor([1, 2, 6])
    """, autocast={"cuda": "accumulate"}, casts_out=True)  # fmt: skip


def _cumprod_backward_with_zeros(grad, x, dim):
    """dx[k] is the product of all x before k, times s[k] = grad[k] + x[k+1] s[k+1].

    The recurrence is solved by doubling: after each step s and the product that leads on from it reach twice as far.
    """
    size = x.size(dim)
    one, zero = cresset.ones_like(x.narrow(dim, 0, 1)), cresset.zeros_like(x.narrow(dim, 0, 1))
    before = cresset.cat([one, x.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    s, onward, reach = grad, cresset.cat([x.narrow(dim, 1, size - 1), zero], dim).conj(), 1
    while reach < size:
        rest = size - reach
        first = onward.narrow(dim, 0, rest)
        s = cresset.cat([s.narrow(dim, 0, rest) + first * s.narrow(dim, reach, rest), s.narrow(dim, rest, reach)], dim)
        onward = cresset.cat([first * onward.narrow(dim, reach, rest), onward.narrow(dim, rest, reach)], dim)
        reach *= 2
    return before.conj() * s


@cumprod.derivative
def _(grad, input, output, dim, dtype):
    def gradient():
        if input.ndim == 0 or input.numel() == 0:
            return grad
        x = input if dtype is None else input.to(dtype)
        if (all_samples(x) == 0).any():
            return _cumprod_backward_with_zeros(grad, x, dim)
        return _from_the_end(cresset.cumsum, grad * output.conj(), dim) / x.conj()

    yield gradient


logcumsumexp = operator("logcumsumexp", """The logarithm of the sum of exponentials so far along `dim`, computed
    without overflow.

    >>> cresset.logcumsumexp(cresset.zeros(3), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """)  # fmt: skip


@logcumsumexp.derivative
def _(grad, input, output, dim):
    def part(log_size):
        return (_from_the_end(cresset.logcumsumexp, log_size - output.conj(), dim) + input.conj()).exp()

    def gradient():
        if input.ndim == 0 or input.numel() == 0:
            return grad
        if input.is_complex():
            return part(grad.log())
        # Logarithms know no signs: what is positive and what is negative go separately. The lowest number stands for
        # log(0).
        nothing = cresset.finfo(grad.dtype).min
        return part(cresset.where(grad > 0, grad.log(), nothing)) - part(
            cresset.where(grad < 0, (-grad).log(), nothing)
        )

    yield gradient


def _to_where_it_came_from(grad, indices, dim):
    return cresset.zeros_like(grad).scatter_add(dim, indices, grad)


cummax = operator("cummax", """The largest element so far along `dim`, and its index; the last of equal ones.

    >>> values, indices = cresset.cummax(cresset.tensor([1, 3, 2]), dim=0)
    >>> values, indices
    (tensor([1, 3, 3]), tensor([0, 1, 1]))
    """)  # fmt: skip

cummin = operator("cummin", """The smallest element so far along `dim`, and its index; the last of equal ones.

    >>> values, indices = cresset.cummin(cresset.tensor([3, 1, 2]), dim=0)
    >>> values, indices
    (tensor([3, 1, 1]), tensor([0, 1, 1]))
    """)  # fmt: skip


@cummax.derivative
def _(grad, indices, dim):
    yield lambda: _to_where_it_came_from(grad, indices, dim)


@cummin.derivative
def _(grad, indices, dim):
    yield lambda: _to_where_it_came_from(grad, indices, dim)


batch("cumprod", "cumsum_", "cumprod_", "cummax", "cummin", "logcumsumexp")("along")


# --- as ONNX ---


def _triangle(g, input, dim, filler):
    """For each place along `dim`, the elements up to it in a last dimension of their own; `filler` stands for those
    after it.
    """
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    if input.dtype is cresset.bool:
        raise g.unsupported("bool tensors")
    axis, size = dim % len(input.shape), input.shape[dim]
    last = len(input.shape)
    order = [k for k in range(last) if k != axis] + [axis]
    rows = g.unsqueeze(g.transpose(g.name(input), order), [last - 1])  # (..., 1, size)
    ones = g.op("Expand", g.number(1, cresset.int64), g.sizes([size, size]))
    seen = g.cast(g.op("Trilu", ones, upper=0), cresset.int64, cresset.bool)
    return g.op("Where", seen, rows, g.number(filler, input.dtype)), [order.index(k) for k in range(last)]


@onnx("cumprod", "logcumsumexp")
def _(g, input, dim):
    kind, filler = ("ReduceProd", 1) if g.call.name == "cumprod" else ("ReduceLogSumExp", -math.inf)
    whole, back = _triangle(g, input, dim, filler)
    return g.transpose(g.reduce(kind, whole, [len(input.shape)], False), back)


@onnx("cummax", "cummin")
def _(g, input, dim):
    kind, filler = ("Max", -math.inf) if g.call.name == "cummax" else ("Min", math.inf)
    whole, back = _triangle(g, input, dim, filler)
    axis = len(input.shape)
    places = g.op("Arg" + kind, whole, axis=axis, keepdims=0, select_last_index=1)
    return [g.transpose(x, back) for x in (g.reduce("Reduce" + kind, whole, [axis], False), places)]


# How they lie on several processes: words of distributed/tensor/words.py.
placement("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")("along")
