"""Layers of quantised models."""

from . import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
