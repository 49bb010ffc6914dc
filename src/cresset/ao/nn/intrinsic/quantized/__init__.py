"""Fused layers that take and give quantized tensors; `dynamic` has those that quantize their input."""

from ...quantized.modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU
from ...quantized.normalization import BNReLU2d, BNReLU3d
from . import dynamic

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "dynamic"]
