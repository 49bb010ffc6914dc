"""Optimizing trained models: PyTorch's torch.ao. Here that is quantization: `ao.quantization` and the layers of
`ao.nn.quantized`.
"""

from . import nn, quantization

__all__ = ["nn", "quantization"]
