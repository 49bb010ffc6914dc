"""Layers that `fuse_modules` puts together: they compute one after the other, and are quantized or trained as one."""

import importlib

from cresset import nn

from . import quantized

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
    "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearReLU", "qat", "quantized",
]  # fmt: skip


def __getattr__(name):
    if name == "qat":  # it needs the classes below
        return importlib.import_module(".qat", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _FusedModule(nn.Sequential):
    """Layers that are quantized as one."""

    _kinds = ()  # what they are, in their order

    def __init__(self, *layers):
        for number, (layer, kind) in enumerate(zip(layers, self._kinds, strict=True)):
            if not isinstance(layer, kind):
                raise AssertionError(
                    f"Incorrect types for input modules: {type(self).__name__} takes a {kind.__name__} in place "
                    f"{number}, got {type(layer).__name__}"
                )
        super().__init__(*layers)


def _kind(name, doc, *layers):
    return type(name, (_FusedModule,), {"__module__": __name__, "__doc__": doc, "_kinds": layers})


LinearReLU = _kind("LinearReLU", "A linear layer and a relu.", nn.Linear, nn.ReLU)
LinearBn1d = _kind("LinearBn1d", "A linear layer and a batch norm, in training.", nn.Linear, nn.BatchNorm1d)
ConvReLU1d = _kind("ConvReLU1d", "A convolution and a relu.", nn.Conv1d, nn.ReLU)
ConvReLU2d = _kind("ConvReLU2d", "A convolution and a relu.", nn.Conv2d, nn.ReLU)
ConvReLU3d = _kind("ConvReLU3d", "A convolution and a relu.", nn.Conv3d, nn.ReLU)
ConvBn1d = _kind("ConvBn1d", "A convolution and a batch norm, in training.", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _kind("ConvBn2d", "A convolution and a batch norm, in training.", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _kind("ConvBn3d", "A convolution and a batch norm, in training.", nn.Conv3d, nn.BatchNorm3d)
_CBR = "A convolution, a batch norm and a relu, in training."
ConvBnReLU1d = _kind("ConvBnReLU1d", _CBR, nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _kind("ConvBnReLU2d", _CBR, nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _kind("ConvBnReLU3d", _CBR, nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _kind("BNReLU2d", "A batch norm and a relu.", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _kind("BNReLU3d", "A batch norm and a relu.", nn.BatchNorm3d, nn.ReLU)
