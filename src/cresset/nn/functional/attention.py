"""Attention: the scaled dot product, and the many-headed one with its projections."""

import math
import warnings

import cresset

from ...ops.attention import attention_weights
from ...ops.attention_choice import SDPAParams, allowed, form_for, why_not
from ...ops.autocast import autocast
from .. import attention
from .dropout import dropout
from .padding import pad


@autocast("lower")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query key^T * scale + mask) value: for each query the mean of the values, weighted by how well its key
    fits.

    Args:
        query: (..., heads, L, E).
        key: (..., heads, S, E).
        value: (..., heads, S, V).
        attn_mask: broadcasts to (..., L, S); True where a key may be seen, or numbers that are added.
        dropout_p: drop attention weights with this probability (also outside of training).
        is_causal: a query sees the keys up to its own position only.
        scale: 1 / sqrt(E) by default.
        enable_gqa: several query heads share a head of keys and values.

    >>> q = cresset.zeros(1, 2, 4)
    >>> F.scaled_dot_product_attention(q, q, cresset.tensor([[[1.0], [3.0]]]))
    tensor([[[2.],
             [2.]]])
    """
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.ndim < 2:
            raise RuntimeError(
                f"scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, "
                f"but {name} has shape {list(t.shape)}"
            )
        if t.dtype != query.dtype or t.device != query.device:
            raise RuntimeError(
                "scaled_dot_product_attention: Expected query, key, and value to have the same dtype and device, but "
                "got "
                f"query {query.dtype} on {query.device} and {name} {t.dtype} on {t.device}"
            )
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.dtype not in (cresset.bool, query.dtype, cresset.float32):
            raise RuntimeError(
                "scaled_dot_product_attention: Expected attn_mask dtype to be bool or float or to match query dtype, "
                f"but got attn_mask.dtype: {attn_mask.dtype} and  query.dtype: {query.dtype} instead."
            )
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else 1.0
    if enable_gqa:
        heads = query.size(-3)
        if key.size(-3) == 0 or heads % key.size(-3) or heads % value.size(-3):
            raise RuntimeError(
                "scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in "
                "query, "
                f"they are {key.size(-3)}, {value.size(-3)} and {heads}"
            )
    params = SDPAParams(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if form_for(params) != "math":
        return cresset._attention(query, key, value, attn_mask, is_causal, scale, enable_gqa)[0]
    if attention.WARN_FOR_UNFUSED_KERNELS:
        for form, name in (("mem_efficient", "Efficient"), ("flash", "Flash")):
            reason = why_not(form, params) if allowed[form] else "it is turned off"
            if reason is not None:
                warnings.warn(f"{name} attention can't be used because: {reason}", stacklevel=2)
    dtype = query.dtype
    if enable_gqa:
        key = key.repeat_interleave(heads // key.size(-3), -3)
        value = value.repeat_interleave(heads // value.size(-3), -3)
    if dtype in (cresset.float16, cresset.bfloat16) and not allowed["fp16_bf16_reduction_math"]:
        query, key, value = query.float(), key.float(), value.float()
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return (weights @ value).to(dtype)


def _project(query, key, value, weight, bias):
    """Queries, keys and values by one stacked weight (3E, E); one product if all three are the same tensor."""
    size = query.size(-1)
    if key is value and query is key:
        return cresset.linear(query, weight, bias).unflatten(-1, (3, size)).unbind(-2)
    weights = weight.split(size)
    biases = (None,) * 3 if bias is None else bias.split(size)
    return tuple(cresset.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _as_added(mask, name, dtype, other=None, other_name="", check_other=True, stacklevel=4):
    """A mask of True (hidden) and False as numbers to add to the scores."""
    if mask is None:
        return None
    if mask.dtype is not cresset.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    if check_other and other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=stacklevel,
        )
    if mask.is_floating_point():
        return mask
    return cresset.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """PyTorch's name for a mask as numbers to add, of dtype `target_type`; `other_type` is the dtype of a mask that
    goes with it.
    """
    other = None if other_type is None else cresset.empty(0, dtype=other_type)
    return _as_added(mask, mask_name, target_type, other, other_name, check_other)


def _none_or_dtype(input):
    """The dtype of a tensor; None for None."""
    if input is not None and not isinstance(input, cresset.Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _check(condition, message):
    if not condition:
        raise AssertionError(message)


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch dimension; refuse shapes that do not fit together."""
    if query.is_nested and query.ndim != 3:
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path, which takes batches of "
            f"sequences; the query has {query.ndim} dimensions"
        )
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    batched = query.ndim == 3
    kind = "batched" if batched else "unbatched"
    _check(
        key.ndim == query.ndim and value.ndim == query.ndim,
        f"For {kind} ({query.ndim}-D) `query`, expected `key` and `value` to be {query.ndim}-D "
        f"but found {key.ndim}-D and {value.ndim}-D tensors respectively",
    )
    if key_padding_mask is not None:
        _check(
            key_padding_mask.ndim == query.ndim - 1,
            f"For {kind} ({query.ndim}-D) `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D "
            f"but found {key_padding_mask.ndim}-D tensor instead",
        )
    if attn_mask is not None:
        _check(
            attn_mask.ndim in (2, 3),
            f"For {kind} ({query.ndim}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
            f"but found {attn_mask.ndim}-D tensor instead",
        )
        if attn_mask.ndim == 3 and not batched:
            expected = (num_heads, query.size(0), key.size(0))
            _check(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}",
            )
    return batched


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p,
    out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
    static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """Project query, key and value, attend in `num_heads` heads, and project the result.

    Args:
        query: (L, N, E) or (L, E).
        key, value: (S, N, ...) or (S, ...).
        bias_k, bias_v: one more key and value for all, (1, 1, E).
        add_zero_attn: one more key and value of zeros.
        key_padding_mask: (N, S) or (S): True for keys that nobody sees, or numbers to add.
        attn_mask: (L, S) or (N * num_heads, L, S): True for keys that a query does not see, or numbers to add.
        need_weights: return the attention weights, too.
        is_causal: a hint that `attn_mask` is the causal mask.
        average_attn_weights: average the returned weights over the heads.

    Returns: the output, shaped like `query`, and the attention weights or None.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key, key is value
        query = query.unsqueeze(1)
        key, value = query if same[0] else key.unsqueeze(1), value.unsqueeze(1)
        value = key if same[1] else value
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, samples, width = query.shape
    keys = key.size(0)
    key_padding_mask = _as_added(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the product below hides the future by itself
    else:
        attn_mask = _as_added(attn_mask, "attn_mask", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False
    _check(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head = width // num_heads
    _check(head * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _check(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            _check(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (
            cresset.linear(x, w, b)
            for x, w, b in zip((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), biases, strict=True)
        )
    else:
        _check(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _check(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        expected = (length, keys) if attn_mask.ndim == 2 else (samples * num_heads, length, keys)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.ndim}D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.ndim == 2 else attn_mask

    if bias_k is not None and bias_v is not None:
        _check(static_k is None and static_v is None, "bias cannot be added to static key or value.")
        k = cresset.cat([k, bias_k.repeat(1, samples, 1)])
        v = cresset.cat([v, bias_v.repeat(1, samples, 1)])
        attn_mask, key_padding_mask = (None if m is None else pad(m, (0, 1)) for m in (attn_mask, key_padding_mask))
    else:
        _check(bias_k is None and bias_v is None, "bias_k and bias_v must be given together")

    def by_head(x):
        return x.reshape(x.size(0), samples * num_heads, head).transpose(0, 1)

    q = by_head(q)
    for name, static in (("static_k", static_k), ("static_v", static_v)):
        if static is not None:
            expected = (samples * num_heads, static.size(1), head)
            _check(
                tuple(static.shape) == expected, f"expecting {name} of shape {expected}, but got {tuple(static.shape)}"
            )
    k = by_head(k) if static_k is None else static_k
    v = by_head(v) if static_v is None else static_v

    if add_zero_attn:
        zeros = k.new_zeros(samples * num_heads, 1, head)
        k, v = cresset.cat([k, zeros], 1), cresset.cat([v, zeros], 1)
        attn_mask, key_padding_mask = (None if m is None else pad(m, (0, 1)) for m in (attn_mask, key_padding_mask))
    keys = k.size(1)

    if key_padding_mask is not None:
        _check(
            tuple(key_padding_mask.shape) == (samples, keys),
            f"expecting key_padding_mask shape of {(samples, keys)}, but got {tuple(key_padding_mask.shape)}",
        )
        hidden = key_padding_mask.view(samples, 1, 1, keys).expand(-1, num_heads, -1, -1)
        hidden = hidden.reshape(samples * num_heads, 1, keys)
        attn_mask = hidden if attn_mask is None else attn_mask + hidden
    dropped = dropout_p if training else 0.0

    if need_weights:
        _check(
            not (is_causal and attn_mask is None),
            (
                "multi_head_attention_forward: is_causal without an attn_mask is not supported together with "
                "need_weights; pass the mask too"
            ),
        )
        scores = (q * math.sqrt(1.0 / head)) @ k.mT
        weights = (scores if attn_mask is None else attn_mask + scores).softmax(-1)
        if dropped > 0.0:
            weights = dropout(weights, dropped)
        mixed = (weights @ v).transpose(0, 1).reshape(length * samples, width)
        output = cresset.linear(mixed, out_proj_weight, out_proj_bias).view(length, samples, out_proj_weight.size(0))
        weights = weights.view(samples, num_heads, length, keys)
        if average_attn_weights:
            weights = weights.mean(1)
        return (output, weights) if batched else (output.squeeze(1), weights.squeeze(0))

    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(samples, num_heads, attn_mask.size(1), keys)
    q, k, v = (x.view(samples, num_heads, x.size(1), head) for x in (q, k, v))
    mixed = cresset.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask, dropped, is_causal)
    mixed = mixed.permute(2, 0, 1, 3).reshape(length * samples, width)
    output = cresset.linear(mixed, out_proj_weight, out_proj_bias).view(length, samples, out_proj_weight.size(0))
    return (output if batched else output.squeeze(1)), None
