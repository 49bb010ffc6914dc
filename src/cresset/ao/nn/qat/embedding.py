"""Embeddings for training with imitated quantization: scale and zero point of each row are floating-point numbers."""

import cresset
from cresset import nn

from . import _from_float, _imitating, _to_float

__all__ = ["Embedding", "EmbeddingBag"]


def _checked(qconfig, what):
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    scheme = qconfig.weight().qscheme
    if scheme != cresset.per_channel_affine_float_qparams:
        raise AssertionError(
            f"{what} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}"
        )
    return qconfig


def _of_float(cls, mod, use_precomputed_fake_quant=False):
    """Of an nn layer with a `qconfig`; shares its weight."""
    plain = cls.__mro__[1]
    if type(mod) is not plain:
        raise AssertionError(f" qat.{cls.__name__}.from_float only works for {plain.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    _checked(mod.qconfig, cls._what)
    return _from_float(cls, mod)


class Embedding(nn.Embedding):
    """nn.Embedding whose weight is quantized in imitation, as `qconfig` says."""

    from_float, to_float, _what = classmethod(_of_float), _to_float, "Embedding"

    def __init__(self, *args, qconfig=None, **kwargs):
        super().__init__(*args, **kwargs)
        _imitating(self, _checked(qconfig, self._what))

    def forward(self, input):
        return nn.functional.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip


class EmbeddingBag(nn.EmbeddingBag):
    """nn.EmbeddingBag whose weight is quantized in imitation, as `qconfig` says."""

    from_float, to_float, _what = classmethod(_of_float), _to_float, "Embedding Bag"

    def __init__(self, *args, qconfig=None, **kwargs):
        super().__init__(*args, **kwargs)
        _imitating(self, _checked(qconfig, self._what))

    def forward(self, input, offsets=None, per_sample_weights=None):
        return nn.functional.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip
