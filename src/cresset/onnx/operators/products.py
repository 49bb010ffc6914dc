"""Products of matrices, linear layers, attention."""

import cresset

from ..dimensions import Size
from . import exports


@exports("linear")
def linear(g, input, weight, bias):
    dtype = g.result.dtype
    x, w = g.cast(input, input.dtype, dtype), g.cast(weight, weight.dtype, dtype)
    b = None if bias is None else g.cast(bias, bias.dtype, dtype)
    if len(input.shape) == 2 and len(weight.shape) == 2 and dtype.is_floating_point:
        return g.op("Gemm", x, w, b, transB=1)
    product = g.op("MatMul", x, g.transpose(w, list(range(len(weight.shape)))[::-1]))
    return product if b is None else g.op("Add", product, b)


@exports("matmul", "mm", "bmm", "mv", "dot")
def matmul(g, input, other=None, mat2=None, vec=None, tensor=None):
    right = next(t for t in (other, mat2, vec, tensor) if t is not None)
    dtype = g.result.dtype
    return g.op("MatMul", g.cast(input, input.dtype, dtype), g.cast(right, right.dtype, dtype))


@exports("addmm")
def addmm(g, input, mat1, mat2, beta, alpha):
    dtype = g.result.dtype
    if not dtype.is_floating_point or any(isinstance(v, Size) for v in (beta, alpha)):
        return _added(g, input, mat1, mat2, beta, alpha)
    operands = [g.cast(t, t.dtype, dtype) for t in (mat1, mat2, input)]
    return g.op("Gemm", *operands, alpha=float(alpha), beta=float(beta))


@exports("baddbmm")
def baddbmm(g, input, batch1, batch2, beta, alpha):
    return _added(g, input, batch1, batch2, beta, alpha)


def _added(g, input, left, right, beta, alpha):
    dtype = g.result.dtype
    product = g.op("MatMul", g.cast(left, left.dtype, dtype), g.cast(right, right.dtype, dtype))
    if alpha != 1:
        product = g.op("Mul", product, g.number(alpha, dtype))
    if beta == 0:
        return product
    x = g.cast(input, input.dtype, dtype)
    return g.op("Add", product, x if beta == 1 else g.op("Mul", x, g.number(beta, dtype)))


@exports("softmax", "log_softmax")
def softmax(g, input, dim):
    x = g.cast(input, input.dtype, g.result.dtype)
    if not input.shape:
        x = g.unsqueeze(x, [0])
    kind = "Softmax" if g.call.name == "softmax" else "LogSoftmax"
    found = g.op(kind, x, axis=dim % max(len(input.shape), 1))
    return found if input.shape else g.squeeze(found, [0])


@exports("_attention")
def attention(g, query, key, value, attn_mask, is_causal, scale, enable_gqa):
    """softmax(query key^T scale + mask) value. A query that sees no key gets zeros."""
    dtype, rank = query.dtype, len(query.shape)
    keys, values = g.name(key), g.name(value)
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        keys, values = (_shared(g, t, query.shape[-3]) for t in (key, value))
    order = [*range(rank - 2), rank - 1, rank - 2]
    scores = g.op("MatMul", g.op("Mul", query, g.number(scale, dtype)), g.transpose(keys, order))
    hidden = None
    lowest = g.number(float("-inf"), dtype)
    if is_causal:
        shape = g.sizes([query.shape[-2], key.shape[-2]])
        ones = g.op("Expand", g.number(1, cresset.int64), shape)
        hidden = g.cast(g.op("Trilu", ones, g.number(1, cresset.int64), upper=1), cresset.int64, cresset.bool)
        return [g.op("MatMul", g.op("Softmax", g.op("Where", hidden, lowest, scores), axis=rank - 1), values), None]
    if attn_mask is None:
        return [g.op("MatMul", g.op("Softmax", scores, axis=rank - 1), values), None]
    if attn_mask.dtype is cresset.bool:
        scores = g.op("Where", attn_mask, scores, lowest)
    else:
        scores = g.op("Add", scores, g.cast(attn_mask, attn_mask.dtype, dtype))
    blind = g.op("Equal", g.reduce("ReduceMax", scores, [rank - 1]), lowest)
    weights = g.op("Where", blind, g.number(0.0, dtype), g.op("Softmax", scores, axis=rank - 1))
    return [g.op("MatMul", weights, values), None]


def _shared(g, t, heads):
    """Each head as often as queries share it."""
    rank, each = len(t.shape), heads // t.shape[-3]
    apart = g.unsqueeze(t, [rank - 2])
    wider = g.op("Tile", apart, g.ints([each if k == rank - 2 else 1 for k in range(rank + 1)]))
    return g.reshape(wider, [*t.shape[:-3], heads, *t.shape[-2:]])
