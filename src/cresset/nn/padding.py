"""Padding layers, for one, two and three spatial dimensions."""

from . import functional as F
from .module import Module
from .sizes import _ntuple


class _Pad(Module):
    """Adds elements at both ends of the last `_dimensions` dimensions.

    Args:
        padding: a number for all sides, or (before, after) for the last dimension, then for the one before it, ...
    """

    __constants__ = ["padding"]
    _dimensions, _mode = 0, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._dimensions)(padding)

    def forward(self, input):
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)

    def _check_input_dim(self, input):
        pass

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with `value`."""

    _dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last two dimensions with `value`."""

    _dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last three dimensions with `value`."""

    _dimensions = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros.

    >>> nn.ZeroPad2d(1)(cresset.ones(1, 1, 1))
    tensor([[[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 0.]]])
    """

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pad the last dimension by its mirror image."""

    _dimensions = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad the last two dimensions by their mirror image."""

    _dimensions = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad the last three dimensions by their mirror image."""

    _dimensions = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pad the last dimension by repeating its ends."""

    _dimensions = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad the last two dimensions by repeating their ends."""

    _dimensions = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad the last three dimensions by repeating their ends."""

    _dimensions = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input):
        n = self._dimensions
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")


class CircularPad1d(_CircularPadNd):
    """Pad the last dimension as if it were a circle."""

    _dimensions = 1


class CircularPad2d(_CircularPadNd):
    """Pad the last two dimensions as if they were circles."""

    _dimensions = 2


class CircularPad3d(_CircularPadNd):
    """Pad the last three dimensions as if they were circles."""

    _dimensions = 3
