"""Layers with integer weights that quantise each input by its own extremes."""

from .linear import Linear

__all__ = ["Linear"]
