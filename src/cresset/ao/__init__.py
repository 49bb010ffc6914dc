"""Optimizing trained models: PyTorch's torch.ao. Quantization is `ao.quantization` and the layers of
`ao.nn.quantized`, masks of zeros are `ao.pruning`.
"""

from . import nn, pruning, quantization

__all__ = ["nn", "pruning", "quantization"]
