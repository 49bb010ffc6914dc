"""Layers that hold integers: what `convert` and `quantize_dynamic` put in the place of floating-point ones.

`dynamic` has those that quantize their input by its own extremes; those here take and give quantized tensors.
"""

from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    DeQuantize,
    Linear,
    LinearReLU,
    Quantize,
)

from . import dynamic  # isort: skip  (of the static layers)

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "DeQuantize", "FXFloatFunctional",
    "FloatFunctional", "Linear", "LinearReLU",
    "QFunctional", "Quantize", "dynamic",
]  # fmt: skip
