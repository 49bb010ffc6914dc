"""Attention with many heads, and the layers of transformers."""

from typing import Optional, Tuple

import cresset as torch
from cresset import Tensor, nn
from cresset.nn import functional as F

aten = torch.ops.aten


def added(mask: Optional[Tensor], dtype: int) -> Optional[Tensor]:
    """A mask of True (hidden) and False as numbers to add to the scores."""
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError("only bool and floating types of masks are supported")
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -float("inf"))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    batched = query.dim() == 3
    if query.dim() != 2 and query.dim() != 3:
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    if not batched:
        query = query.unsqueeze(1)
        key = key.unsqueeze(1)
        value = value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length = query.size(0)
    samples = query.size(1)
    width = query.size(2)
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    padding = added(key_padding_mask, query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    mask: Optional[Tensor] = None
    if is_causal and padding is None and not need_weights:
        mask = None
    else:
        mask = added(attn_mask, query.dtype)
        is_causal = False
    head = width // num_heads

    bias_q: Optional[Tensor] = None
    bias_of_k: Optional[Tensor] = None
    bias_of_v: Optional[Tensor] = None
    if in_proj_bias is not None:
        parts = in_proj_bias.chunk(3)
        bias_q = parts[0]
        bias_of_k = parts[1]
        bias_of_v = parts[2]
    if not use_separate_proj_weight:
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        weights = in_proj_weight.chunk(3)
        q = aten.linear(query, weights[0], bias_q)
        k = aten.linear(key, weights[1], bias_of_k)
        v = aten.linear(value, weights[2], bias_of_v)
    else:
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q = aten.linear(query, q_proj_weight, bias_q)
        k = aten.linear(key, k_proj_weight, bias_of_k)
        v = aten.linear(value, v_proj_weight, bias_of_v)

    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
        elif mask.dim() != 3:
            raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if bias_k is not None and bias_v is not None:
        k = torch.cat([k, bias_k.repeat(1, samples, 1)])
        v = torch.cat([v, bias_v.repeat(1, samples, 1)])
        if mask is not None:
            mask = aten.pad(mask, [0, 1])
        if padding is not None:
            padding = aten.pad(padding, [0, 1])
    q = q.reshape(length, samples * num_heads, head).transpose(0, 1)
    if static_k is None:
        k = k.reshape(k.size(0), samples * num_heads, head).transpose(0, 1)
    else:
        k = static_k
    if static_v is None:
        v = v.reshape(v.size(0), samples * num_heads, head).transpose(0, 1)
    else:
        v = static_v
    if add_zero_attn:
        zeros = torch.zeros([samples * num_heads, 1, head], dtype=k.dtype, device=k.device)
        k = torch.cat([k, zeros], dim=1)
        v = torch.cat([v, zeros], dim=1)
        if mask is not None:
            mask = aten.pad(mask, [0, 1])
        if padding is not None:
            padding = aten.pad(padding, [0, 1])
    keys = k.size(1)
    if padding is not None:
        spread = padding.view(samples, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(samples * num_heads, 1, keys)
        mask = spread if mask is None else mask + spread
    chance = dropout_p if training else 0.0

    if need_weights:
        scores = torch.bmm(q * (1.0 / float(head)) ** 0.5, k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        seen = torch.softmax(scores, -1)
        if chance > 0.0:
            seen = torch.dropout(seen, chance, True)
        output = torch.bmm(seen, v).transpose(0, 1).reshape(length * samples, width)
        output = aten.linear(output, out_proj_weight, out_proj_bias).view(length, samples, width)
        seen = seen.view(samples, num_heads, length, keys)
        if average_attn_weights:
            seen = seen.mean(dim=1)
        if not batched:
            return output.squeeze(1), seen.squeeze(0)
        return output, seen
    if mask is not None:
        if mask.size(0) == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view(samples, num_heads, -1, keys)
    output = aten.scaled_dot_product_attention(
        q.view(samples, num_heads, length, head),
        k.view(samples, num_heads, keys, head),
        v.view(samples, num_heads, keys, head),
        mask,
        chance,
        is_causal,
    )
    output = output.permute(2, 0, 1, 3).reshape(length * samples, width)
    output = aten.linear(output, out_proj_weight, out_proj_bias).view(length, samples, width)
    return output if batched else output.squeeze(1), None


def multihead_forward(
    self,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    turned = self.batch_first and query.dim() == 3
    if turned:
        query = query.transpose(0, 1)
        key = key.transpose(0, 1)
        value = value.transpose(0, 1)
    output, weights = F.multi_head_attention_forward(
        query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
        self.bias_v, self.add_zero_attn, float(self.dropout),
        self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
        not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight,
        self.v_proj_weight, None, None, average_attn_weights, is_causal,
    )  # fmt: skip
    return output.transpose(0, 1) if turned else output, weights


def encoder_layer_forward(
    self,
    src: Tensor,
    src_mask: Optional[Tensor] = None,
    src_key_padding_mask: Optional[Tensor] = None,
    is_causal: bool = False,
) -> Tensor:
    padding = added(src_key_padding_mask, src.dtype)
    mask = added(src_mask, src.dtype)
    if self.norm_first:
        x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
        return x + self._ff_block(self.norm2(x))
    x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
    return self.norm2(x + self._ff_block(x))


def self_attention_block(
    self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False
) -> Tensor:
    x = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, True, is_causal)[0]
    return self.dropout1(x)


def cross_attention_block(
    self,
    x: Tensor,
    mem: Tensor,
    attn_mask: Optional[Tensor],
    key_padding_mask: Optional[Tensor],
    is_causal: bool = False,
) -> Tensor:
    x = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask, True, is_causal)[0]
    return self.dropout2(x)


def causal(mask: Optional[Tensor], is_causal: Optional[bool], size: int) -> bool:
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    if mask.dim() != 2 or mask.size(0) != size or mask.size(1) != size:
        return False
    dtype = mask.dtype if mask.is_floating_point() else torch.float32
    future = torch.triu(torch.full([size, size], -float("inf"), dtype=dtype, device=mask.device), 1)
    return bool((mask == future).all())


def length_of(x: Tensor, batch_first: bool) -> int:
    return x.size(1) if batch_first and x.dim() == 3 else x.size(0)


def encoder_forward(
    self,
    src: Tensor,
    mask: Optional[Tensor] = None,
    src_key_padding_mask: Optional[Tensor] = None,
    is_causal: Optional[bool] = None,
) -> Tensor:
    padding = added(src_key_padding_mask, src.dtype)
    numbers = added(mask, src.dtype)
    hidden = causal(numbers, is_causal, length_of(src, self.layers[0].self_attn.batch_first))
    output = src
    for layer in self.layers:
        output = layer(output, numbers, padding, hidden)
    if self.norm is not None:
        output = self.norm(output)
    return output


def decoder_layer_forward(
    self,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Optional[Tensor] = None,
    memory_mask: Optional[Tensor] = None,
    tgt_key_padding_mask: Optional[Tensor] = None,
    memory_key_padding_mask: Optional[Tensor] = None,
    tgt_is_causal: bool = False,
    memory_is_causal: bool = False,
) -> Tensor:
    if self.norm_first:
        x = tgt + self._sa_block(self.norm1(tgt), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return x + self._ff_block(self.norm3(x))
    x = self.norm1(tgt + self._sa_block(tgt, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
    x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
    return self.norm3(x + self._ff_block(x))


def decoder_forward(
    self,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Optional[Tensor] = None,
    memory_mask: Optional[Tensor] = None,
    tgt_key_padding_mask: Optional[Tensor] = None,
    memory_key_padding_mask: Optional[Tensor] = None,
    tgt_is_causal: Optional[bool] = None,
    memory_is_causal: bool = False,
) -> Tensor:
    hidden = causal(tgt_mask, tgt_is_causal, length_of(tgt, self.layers[0].self_attn.batch_first))
    output = tgt
    for layer in self.layers:
        output = layer(
            output,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            hidden,
            memory_is_causal,
        )
    if self.norm is not None:
        output = self.norm(output)
    return output


def transformer_forward(
    self,
    src: Tensor,
    tgt: Tensor,
    src_mask: Optional[Tensor] = None,
    tgt_mask: Optional[Tensor] = None,
    memory_mask: Optional[Tensor] = None,
    src_key_padding_mask: Optional[Tensor] = None,
    tgt_key_padding_mask: Optional[Tensor] = None,
    memory_key_padding_mask: Optional[Tensor] = None,
    src_is_causal: Optional[bool] = None,
    tgt_is_causal: Optional[bool] = None,
    memory_is_causal: bool = False,
) -> Tensor:
    if src.dim() == 3:
        samples = 0 if self.batch_first else 1
        if src.size(samples) != tgt.size(samples):
            raise RuntimeError("the batch number of src and tgt must be equal")
    if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
        raise RuntimeError("the feature number of src and tgt must be equal to d_model")
    memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
    return self.decoder(
        tgt,
        memory,
        tgt_mask,
        memory_mask,
        tgt_key_padding_mask,
        memory_key_padding_mask,
        tgt_is_causal,
        memory_is_causal,
    )


STANDS_FOR = {
    F: {"multi_head_attention_forward": multi_head_attention_forward},
    "methods": {
        (nn.MultiheadAttention, "forward"): multihead_forward,
        (nn.TransformerEncoderLayer, "forward"): encoder_layer_forward,
        (nn.TransformerEncoderLayer, "_sa_block"): self_attention_block,
        (nn.TransformerEncoder, "forward"): encoder_forward,
        (nn.TransformerDecoderLayer, "forward"): decoder_layer_forward,
        (nn.TransformerDecoderLayer, "_sa_block"): self_attention_block,
        (nn.TransformerDecoderLayer, "_mha_block"): cross_attention_block,
        (nn.TransformerDecoder, "forward"): decoder_forward,
        (nn.Transformer, "forward"): transformer_forward,
    },
}
