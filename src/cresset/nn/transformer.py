"""Transformers: encoder and decoder layers, stacks of them, and the whole."""

import copy

import cresset

from . import functional as F
from . import init
from .activation import GELU, ReLU
from .containers import ModuleList
from .dropout import Dropout
from .functional.attention import _as_added
from .linear import Linear
from .module import Module
from .multihead import MultiheadAttention
from .norm import LayerNorm


def _clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(activation):
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        return getattr(F, activation)
    return activation


def _number_of(activation):
    """What PyTorch notes beside an encoder layer's activation, and reads from files: 1 for relu, 2 for gelu, 0 for
    others.
    """
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _causal_mask(size, device=None, dtype=None):
    """Minus infinity above the diagonal, zero elsewhere."""
    return cresset.triu(cresset.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _is_causal(mask, is_causal, size):
    """Whether `mask` is the causal one: as the caller says, else by looking."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    if size is None or mask.dim() != 2 or tuple(mask.shape) != (size, size):
        return False
    return bool((mask == _causal_mask(size, mask.device, mask.dtype if mask.is_floating_point() else None)).all())


def _length(x, batch_first):
    """The length of the sequences."""
    if x.dim() == 2:
        return x.size(0)
    return x.size(1) if batch_first else x.size(0)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with dropout, a residual connection and a LayerNorm.

    Args:
        d_model: features.
        nhead: heads of the attention.
        dim_feedforward: width of the feed-forward network.
        activation: "relu", "gelu" or a function.
        norm_first: normalize before attention and feed-forward instead of after.

    >>> nn.TransformerEncoderLayer(8, 2, batch_first=True)(cresset.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)
        self.activation_relu_or_gelu = _number_of(self.activation)

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):  # files of old versions; a layer as activation is among the modules
            self.activation = F.relu

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        """Encode `src`; the masks are those of MultiheadAttention."""
        padding = _as_added(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask", stacklevel=3)
        mask = _as_added(src_mask, "src_mask", src.dtype, check_other=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _can_leave_out(layer):
    """Whether a layer is one of those for which PyTorch skips padding in inference."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first or not layer.activation_relu_or_gelu:
        return False
    attention = layer.self_attn
    if not attention.batch_first or not attention._qkv_same_embed_dim or attention.in_proj_bias is None:
        return False
    return layer.norm1.eps == layer.norm2.eps and attention.num_heads % 2 == 0


class TransformerEncoder(Module):
    """Copies of an encoder layer on top of each other.

    Args:
        encoder_layer: the layer that is copied.
        num_layers: how many times.
        norm: a last normalization.
        enable_nested_tensor: in inference, what `src_key_padding_mask` hides at the ends of the sequences comes out of
            the layers as zeros. `use_nested_tensor` says whether the layer is one for which PyTorch does so.
        mask_check: only where it is known to hide ends alone.
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = bool(enable_nested_tensor) and _can_leave_out(encoder_layer)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """Encode `src`; whether `mask` is causal is found out if `is_causal` is None."""
        src_key_padding_mask = _as_added(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask", stacklevel=3
        )
        mask = _as_added(mask, "mask", src.dtype, check_other=False)
        batch_first = self.layers[0].self_attn.batch_first
        is_causal = _is_causal(mask, is_causal, _length(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if mask is None and src_key_padding_mask is not None and self._leaves_out(src, src_key_padding_mask != 0):
            output = output.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _leaves_out(self, src, hidden):
        """Whether the padding that is `hidden` has no output: in inference, where PyTorch skips it."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3 or src.is_nested:
            return False
        if not cresset.backends.mha.get_fastpath_enabled() or cresset.is_autocast_enabled():
            return False
        if cresset.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters())):
            return False
        if not self.mask_check:
            return True
        from ..compiler import is_exporting  # upward: whether a program is recorded, which asks no values

        return not is_exporting() and bool((hidden[:, :-1] <= hidden[:, 1:]).all())


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and a feed-forward network. See TransformerEncoderLayer."""

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False, bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):  # files of old versions; a layer as activation is among the modules
            self.activation = F.relu

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal=False, memory_is_causal=False,
    ):  # fmt: skip
        """Decode `tgt`, looking at the encoder's output `memory`."""
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        others = memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *others)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *others))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout1(x)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """Copies of a decoder layer on top of each other."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal=None, memory_is_causal=False,
    ):  # fmt: skip
        """Decode `tgt`, looking at the encoder's output `memory`."""
        length = _length(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        num_encoder_layers, num_decoder_layers: how many layers each has.
        custom_encoder, custom_decoder: modules to use instead.

    >>> model = nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(cresset.zeros(6, 3, 8), cresset.zeros(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
        activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False,
        bias=True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip
        made = {"device": device, "dtype": dtype}
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*settings)
            self.encoder = TransformerEncoder(
                layer, num_encoder_layers, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            )
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*settings)
            self.decoder = TransformerDecoder(
                layer, num_decoder_layers, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False,
    ):  # fmt: skip
        """Encode `src` and decode `tgt`."""
        if src.dim() == 3:
            samples = 0 if self.batch_first else 1
            if src.size(samples) != tgt.size(samples):
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The mask with which a position sees those up to its own only: minus infinity above the diagonal."""
        return _causal_mask(sz, device, dtype)
