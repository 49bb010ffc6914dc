"""Masks of causal attention that are known by two lengths and a corner, and need no memory until one looks at them."""

import enum

import cresset

from ..functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal starts in: of the first query and key, or of the last."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(cresset.Tensor):
    """A causal mask as an attn_mask of scaled_dot_product_attention; made by causal_upper_left, causal_lower_right."""

    def __new__(cls, *_args, **_kwargs):
        return super().__new__(cls)

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            import warnings

            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device=None):
        """The mask as a tensor of bools: True where a query sees a key."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return cresset.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=cresset.bool).tril(offset)

    @staticmethod
    def _dispatch(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        if attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return scaled_dot_product_attention(
                query, key, value, None, dropout_p, True, scale=scale, enable_gqa=enable_gqa
            )
        return scaled_dot_product_attention(
            query, key, value, attn_mask._materialize(query.device), dropout_p, False, scale=scale,
            enable_gqa=enable_gqa,
        )  # fmt: skip

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents=None):
        return repr(self._materialize())


def causal_upper_left(*size):
    """The mask by which query i sees the keys 0 to i, for `(queries, keys)`.

    >>> cresset.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """The mask by which the last query sees all keys, the one before it all but the last, for `(queries, keys)`.

    >>> cresset.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
