"""Layers with integer weights that quantize each input by its own extremes."""

from .linear import Linear
from .lstm import LSTM

__all__ = ["LSTM", "Linear"]
