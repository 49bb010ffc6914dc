"""Layers of quantized models."""

from . import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
