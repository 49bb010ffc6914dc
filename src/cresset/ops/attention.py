"""Attention in blocks, native: documentation and derivative. `nn.functional.scaled_dot_product_attention` is the
function for users.

A gradient is one fused kernel that computes the weights again, block by block; when it shall itself be differentiated
(create_graph) it is made of ordinary operators instead, and then holds the whole matrix of weights.
"""

import math

import cresset

from .registry import batch, onnx, operator, placement

_attention = operator(
    "_attention",
    """softmax(query key^T scale + mask) value, and what backward needs of each row, without holding the matrix of
    weights.

    Args:
        attn_mask: None, True where a key may be seen, or numbers that are added; broadcasts to (..., queries, keys).
        is_causal: query i sees the keys up to i only.
        enable_gqa: several heads of queries share a head of keys and values.

    >>> q = cresset.zeros(1, 2, 4)
    >>> cresset._attention(q, q, cresset.tensor([[[1.0], [3.0]]]), None, False, 0.5)[0].flatten()
    tensor([2., 2.])
    """,
)
operator("_attention_backward", """The gradients of query, key and value of `_attention`.""")


def attention_weights(query, key, attn_mask, is_causal, scale):
    """softmax(query key^T scale + mask) of ordinary operators. A query that sees no key gets zeros."""
    scores = (query * scale) @ key.mT
    if is_causal:
        hidden = cresset.ones(scores.shape[-2:], dtype=cresset.bool, device=scores.device).triu(1)
        return scores.masked_fill(hidden, -math.inf).softmax(-1)
    if attn_mask is None:
        return scores.softmax(-1)
    if attn_mask.dtype is cresset.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
    else:
        scores = scores + attn_mask.to(scores.dtype)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(blind, 0)


@_attention.derivative
def _(grad, query, key, value, output, rows, attn_mask, is_causal, scale, enable_gqa):
    if not cresset.is_grad_enabled():
        gradients = cresset._attention_backward(
            grad, query, key, value, output, rows, attn_mask, is_causal, scale, enable_gqa
        )
        yield lambda: gradients[0]
        yield lambda: gradients[1]
        yield lambda: gradients[2]
        return
    dtype, group = query.dtype, query.size(-3) // key.size(-3) if enable_gqa else 1
    if dtype in (cresset.float16, cresset.bfloat16):
        grad, query, key, value = grad.float(), query.float(), key.float(), value.float()
    wide_key, wide_value = (t.repeat_interleave(group, -3) if group > 1 else t for t in (key, value))
    weights = attention_weights(query, wide_key, attn_mask, is_causal, scale)
    change = grad @ wide_value.mT
    slopes = weights * (change - (change * weights).sum(-1, keepdim=True)) * scale

    def shared(gradient):  # summed over the heads that share one
        return (gradient.unflatten(-3, (-1, group)).sum(-3) if group > 1 else gradient).to(dtype)

    yield lambda: (slopes @ wide_key).to(dtype)
    yield lambda: shared(slopes.mT @ query)
    yield lambda: shared(weights.mT @ grad)


# --- inside vmap ---


@batch("_attention", "_attention_backward")
def _(call):
    """Leading dimensions are free; a mask broadcasts."""
    mask = call.place("attn_mask")
    args = list(call.args)
    for i in range(mask):
        args[i] = call.full(i)
    if args[mask] is not None:
        args[mask] = call.padded(mask, call.rank(call.place("query")))
    return call.run(*args)


# --- as ONNX ---


@onnx("_attention")
def _(g, query, key, value, attn_mask, is_causal, scale, enable_gqa):
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


# How they lie on several processes: words of distributed/tensor/words.py.
placement("_attention")("attended")
