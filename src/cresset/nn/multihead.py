"""Attention with many heads, as a layer with its projections."""

import cresset

from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Project queries, keys and values, attend in `num_heads` heads, and project the result.

    Args:
        embed_dim: features of queries and of the output.
        num_heads: heads; each has embed_dim / num_heads features.
        dropout: probability of dropping an attention weight in training.
        bias: learn biases for the projections.
        add_bias_kv: learn one more key and value.
        add_zero_attn: add a key and value of zeros.
        kdim, vdim: features of keys and values, if they differ from embed_dim.
        batch_first: sequences are (N, L, features) instead of (L, N, features).

    >>> x = cresset.zeros(5, 2, 8)
    >>> output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 5, 5]))
    """

    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
        vdim=None,
        batch_first=False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        made = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        separate = not self._qkv_same_embed_dim
        for name, wanted, shape in (
            ("q_proj_weight", separate, (embed_dim, embed_dim)),
            ("k_proj_weight", separate, (embed_dim, self.kdim)),
            ("v_proj_weight", separate, (embed_dim, self.vdim)),
            ("in_proj_weight", not separate, (3 * embed_dim, embed_dim)),
            ("in_proj_bias", bias, (3 * embed_dim,)),
            ("bias_k", add_bias_kv, (1, 1, embed_dim)),
            ("bias_v", add_bias_kv, (1, 1, embed_dim)),
        ):
            if wanted:
                setattr(self, name, Parameter(cresset.empty(shape, **made)))
            elif name in ("bias_k", "bias_v"):
                setattr(self, name, None)
            else:
                self.register_parameter(name, None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
        is_causal=False,
    ):  # fmt: skip
        """The output, shaped like `query`, and the attention weights, or None without `need_weights`.

        Args:
            key_padding_mask: (N, S): True for keys that nobody sees.
            attn_mask: (L, S) or (N * num_heads, L, S): True for keys that a query does not see, or numbers to add.
            is_causal: a hint that `attn_mask` is the causal mask.

        Nested tensors, of sequences that need no padding, are taken with `batch_first`, without masks and weights.
        """
        if query.is_nested or key.is_nested or value.is_nested:
            return self._of_nested(query, key, value, key_padding_mask, attn_mask, need_weights, is_causal), None
        batched = query.dim() == 3
        if self.batch_first and batched:
            # Keep sameness: one product serves all three projections of the same tensor.
            first = query.transpose(0, 1)
            second = first if key is query else key.transpose(0, 1)
            third = second if value is key else value.transpose(0, 1)
            query, key, value = first, second, third
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (output.transpose(0, 1) if self.batch_first and batched else output), weights

    def _of_nested(self, query, key, value, key_padding_mask, attn_mask, need_weights, is_causal):
        """The output for nested tensors: each sequence attends to its own."""
        why = next(
            (
                why
                for why, holds in (
                    ("batch_first was not True", not self.batch_first),
                    ("query, key and value were not all nested tensors of three dimensions",
                     not all(x.is_nested and x.dim() == 3 for x in (query, key, value))),
                    ("some mask was passed: sequences without padding need none",
                     key_padding_mask is not None or attn_mask is not None),
                    ("need_weights was True", need_weights),
                    ("a key is added to the sequences", self.bias_k is not None or self.add_zero_attn),
                )
                if holds
            ),
            None,
        )  # fmt: skip
        if why is not None:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit "
                f"because {why}"
            )
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        biases = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        heads = [
            F.linear(x, weight, bias).unflatten(-1, [self.num_heads, self.head_dim]).transpose(1, 2)
            for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
        ]
        dropout = self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(*heads, dropout_p=dropout, is_causal=is_causal)
        return self.out_proj(output.transpose(1, 2).flatten(-2))
