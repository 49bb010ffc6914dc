"""Layers that hold integers: what `convert` and `quantize_dynamic` put in the place of floating-point ones.

`dynamic` has those that quantize their input by its own extremes; those here take and give quantized tensors.
"""

from cresset.nn import MaxPool2d

from . import functional, reference
from .activation import ELU, Dropout, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DeQuantize,
    Linear,
    LinearReLU,
    Quantize,
)
from .normalization import (
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)

from . import dynamic  # isort: skip  (of the static layers)

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DeQuantize", "Dropout", "ELU", "FXFloatFunctional",
    "FloatFunctional", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "LeakyReLU", "Linear", "LinearReLU", "MaxPool2d", "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid", "Softmax",
    "dynamic", "functional", "reference",
]  # fmt: skip
