"""Attention among sequences of different lengths that stand one after the other in one tensor, without padding.

PyTorch has it on GPUs only. Each sequence is one call of scaled_dot_product_attention.
"""

import math
from typing import NamedTuple

import cresset

from ..functional import scaled_dot_product_attention

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What else varlen_attn should give: `lse`, the logarithms of the sums of exponentials."""

    lse: bool = False


def varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None, window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None, block_table=None, num_splits=None,
):  # fmt: skip
    """scaled_dot_product_attention inside of each sequence.

    Args:
        query: (tokens of all sequences, heads, E).
        key, value: (tokens, heads, E); with a block_table (pages, tokens of a page, heads, E).
        cu_seq_q, cu_seq_k: where each sequence starts, and after the last one where it ends. cu_seq_k is not needed
            with a block_table.
        max_q, max_k: the longest lengths.
        return_aux: AuxRequest(lse=True) gives (result, lse), lse of shape (heads, tokens).
        window_size: how many keys to the left and to the right of its own position a query sees; -1 for all, so (-1, 0)
            is causal. The last query stands at the last key.
        enable_gqa: several query heads share a head of keys and values.
        seqused_k: how many keys of each sequence count.
        block_table: for each sequence the pages that hold its keys and values, in order; needs seqused_k.
        num_splits: of no effect: the result never depends on the other sequences.

    >>> q = cresset.ones(3, 1, 4)
    >>> starts = cresset.tensor([0, 1, 3], dtype=cresset.int32)
    >>> nn.attention.varlen.varlen_attn(q, q, q.cumsum(0), starts, starts, 2, 2)[:, 0, 0]
    tensor([1.0000, 2.5000, 2.5000])
    """
    if block_table is not None and seqused_k is None:
        raise ValueError("varlen_attn: block_table needs seqused_k, the number of keys of each sequence")
    if (
        (seqused_k is not None or block_table is not None)
        and cresset.is_grad_enabled()
        and (query.requires_grad or key.requires_grad or value.requires_grad)
    ):
        raise RuntimeError("varlen_attn: seqused_k and block_table have no derivative; use no_grad")
    if not enable_gqa and block_table is None and query.size(1) != key.size(1):
        raise ValueError(
            f"varlen_attn: query has {query.size(1)} heads and key {key.size(1)}; enable_gqa=True allows that"
        )
    queries = cu_seq_q.tolist()
    used = seqused_k.tolist() if seqused_k is not None else None
    keys = cu_seq_k.tolist() if cu_seq_k is not None else None
    if keys is None and block_table is None:
        raise ValueError("varlen_attn: cu_seq_k is needed without a block_table")
    _check_longest("max_q", max_q, [b - a for a, b in zip(queries, queries[1:], strict=False)])
    _check_longest("max_k", max_k, used if used is not None else [b - a for a, b in zip(keys, keys[1:], strict=False)])
    results, sums = [], []
    for i, (start, end) in enumerate(zip(queries, queries[1:], strict=False)):
        q = query[start:end].transpose(0, 1)
        if block_table is not None:
            pages = block_table[i, : math.ceil(used[i] / key.size(1))].long()
            k, v = (t[pages].flatten(0, 1)[: used[i]].transpose(0, 1) for t in (key, value))
        else:
            last = keys[i + 1] if used is None else keys[i] + used[i]
            k, v = (t[keys[i] : last].transpose(0, 1) for t in (key, value))
        mask = _window(q.size(1), k.size(1), *window_size, query.device)
        results.append(scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=enable_gqa).transpose(0, 1))
        if return_aux is not None and return_aux.lse:
            sums.append(_log_sums(q, k, mask, scale))
    result = cresset.cat(results) if results else query.new_empty(query.shape)
    return (result, cresset.cat(sums, 1)) if return_aux is not None and return_aux.lse else result


def _check_longest(name, longest, lengths):
    if lengths and longest is not None and longest < max(lengths):
        raise ValueError(f"varlen_attn: {name}={longest} is less than the longest sequence, {max(lengths)}")


def varlen_attn_out(out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **settings):
    """varlen_attn, written into `out`."""
    with cresset.no_grad():
        result = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **settings)
        if isinstance(result, tuple):
            return out.copy_(result[0]), result[1]
        return out.copy_(result)


def _window(queries, keys, left, right, device):
    """True where a query sees a key; None where all do. The last query stands at the last key."""
    if left < 0 and right < 0:
        return None
    place = cresset.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    key = cresset.arange(keys, device=device)
    seen = cresset.ones(queries, keys, dtype=cresset.bool, device=device)
    if left >= 0:
        seen &= key >= place - left
    if right >= 0:
        seen &= key <= place + right
    return seen


def _log_sums(q, k, mask, scale):
    """log(sum(exp(scores))) of each head and query, in single precision."""
    k = k.repeat_interleave(q.size(0) // k.size(0), 0)
    scores = (q.float() @ k.float().transpose(1, 2)) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.logsumexp(-1)
