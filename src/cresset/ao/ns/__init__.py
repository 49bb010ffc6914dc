"""Comparing a model with the quantized one made of it, layer by layer."""
