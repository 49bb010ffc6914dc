"""The two operators that PyTorch's scripted attention layers call when no gradient is needed: attention with its
projections, and a whole encoder layer.
"""

import cresset

from .aten_forms import _functional

_SOURCE, _PADDING = 0, 1  # kinds of mask: (queries, keys), and (batch, keys); others have the shape of the scores


def _heads(x, count):
    batch, length, width = x.shape
    return x.view(batch, length, count, width // count).transpose(1, 2)


def _masked(scores, mask, kind):
    if mask is None:
        return scores
    if kind == _PADDING:
        mask = mask[:, None, None, :]
    if mask.dtype == cresset.bool:
        return scores.masked_fill(mask, float("-inf"))
    return scores + mask


def _native_multi_head_attention(
    query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
    mask=None, need_weights=True, average_attn_weights=True, mask_type=None,
) -> tuple:  # fmt: skip
    """Attention of `num_head` heads, and its weights, or None."""
    if query.is_nested:
        if mask is not None:
            raise RuntimeError("_native_multi_head_attention: NestedTensor with mask is not supported")
        return _nested_attention(query, key, value, lambda q, k, v, beyond: _native_multi_head_attention(
            q, k, v, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
            beyond, need_weights, average_attn_weights, _PADDING,
        ))  # fmt: skip
    inputs, linear = (query, key, value), _functional().linear
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (_heads(linear(x, w, b), num_head) for x, w, b in zip(inputs, weights, biases, strict=True))
    scores = q @ k.transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    shares = cresset.softmax(_masked(scores, mask, mask_type), -1)
    batch, length, width = query.shape
    result = linear((shares @ v).transpose(1, 2).reshape(batch, length, width), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, shares.mean(1) if average_attn_weights else shares


def _nested_attention(query, key, value, attend) -> tuple:
    """Attention of nested tensors: of their padded forms, where no query sees the padding of the keys."""
    lengths = cresset.tensor([part.shape[0] for part in key.unbind()], device=key.device)
    padded = [tensor.to_padded_tensor(0.0) for tensor in (query, key, value)]
    beyond = cresset.arange(padded[1].shape[1], device=key.device) >= lengths[:, None]
    result, shares = attend(*padded, beyond)
    rows = [part[: of.shape[0]] for part, of in zip(result.unbind(), query.unbind(), strict=True)]
    return cresset.nested.as_nested_tensor(rows, layout=query.layout), shares


def _transformer_encoder_layer_fwd(
    src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
    norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2,
    mask=None, mask_type=None,
):  # fmt: skip
    """nn.TransformerEncoderLayer without dropout."""
    functional = _functional()

    def norm(x, weight, bias):
        return functional.layer_norm(x, [embed_dim], weight, bias, eps)

    def attention(x):
        found, _ = _native_multi_head_attention(
            x,
            x,
            x,
            embed_dim,
            num_heads,
            qkv_weight,
            qkv_bias,
            proj_weight,
            proj_bias,
            mask,
            False,
            mask_type=mask_type,
        )
        return found

    def feed_forward(x):
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(inner) if use_gelu else inner.relu(), ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + attention(norm(src, norm_weight_1, norm_bias_1))
        return src + feed_forward(norm(src, norm_weight_2, norm_bias_2))
    src = norm(src + attention(src), norm_weight_1, norm_bias_1)
    return norm(src + feed_forward(src), norm_weight_2, norm_bias_2)
