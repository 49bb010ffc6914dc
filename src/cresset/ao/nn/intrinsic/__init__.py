"""Layers that `fuse_modules` puts together: they compute one after the other, and are quantized as one."""

from cresset import nn

from . import quantized

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "quantized"]


class _Fused(nn.Sequential):
    """Layers that are quantized as one."""


class LinearReLU(_Fused):
    """A linear layer and a relu."""

    def __init__(self, linear, relu):
        super().__init__(linear, relu)


class ConvReLU1d(_Fused):
    """A convolution and a relu."""

    def __init__(self, conv, relu):
        super().__init__(conv, relu)


class ConvReLU2d(ConvReLU1d):
    """A convolution and a relu."""


class ConvReLU3d(ConvReLU1d):
    """A convolution and a relu."""


class BNReLU2d(_Fused):
    """A batch norm and a relu."""

    def __init__(self, batch_norm, relu):
        super().__init__(batch_norm, relu)


class BNReLU3d(BNReLU2d):
    """A batch norm and a relu."""
