"""Fused layers with int8 weights that quantize each input by its extremes."""

from ...quantized.dynamic import Linear

__all__ = ["LinearReLU"]


class LinearReLU(Linear):
    """A dynamically quantized linear layer, then a relu."""

    def forward(self, x):
        return super().forward(x).relu()

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"
