"""Convolution layers, also transposed and lazy, for one, two and three spatial dimensions."""

import math
import warnings

import cresset

from ..ops.convolution import same_padding
from . import functional as F
from . import init
from .lazy import LazyModuleMixin
from .module import Module
from .parameter import Parameter, UninitializedParameter
from .sizes import _of_dimensions, _reverse_repeat_tuple


class _ConvNd(Module):
    """What all convolutions share: their settings, their parameters and how they print."""

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip
    _dimensions = 0

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups,
        bias,
        padding_mode, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, "
                f"but got padding_mode='{padding_mode}'"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.transposed, self.output_padding, self.groups, self.padding_mode = (
            transposed,
            output_padding,
            groups,
            padding_mode,
        )
        # What `pad` wants, for the padding modes that the convolution itself does not know.
        if isinstance(padding, str):
            amounts = same_padding(kernel_size, dilation) if padding == "same" else [(0, 0)] * len(kernel_size)
            self._reversed_padding_repeated_twice = [number for pair in reversed(amounts) for number in pair]
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        self._make_parameters(bias, device, dtype)

    def _weight_shape(self):
        if self.transposed:
            return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _make_parameters(self, bias, device, dtype):
        self.weight = Parameter(cresset.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(cresset.empty(self.out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new starting values, evenly from [-k, k] with k = 1 / sqrt(fan_in)."""
        weight = self.weight
        if weight.is_contiguous():
            init.kaiming_uniform_(weight, a=math.sqrt(5))
        else:  # the same numbers in the same places, whatever the memory format
            drawn = init.kaiming_uniform_(weight.detach().clone(memory_format=cresset.contiguous_format), math.sqrt(5))
            with cresset.no_grad():
                weight.copy_(drawn)
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution of `_dimensions` spatial dimensions.

    Args:
        in_channels, out_channels: how many channels go in and come out.
        kernel_size: a number, or one for each dimension; so stride, padding and dilation.
        padding: also "same" or "valid".
        groups: how many groups of channels are kept apart.
        bias: learn a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros",
        device=None, dtype=None,
    ):  # fmt: skip
        each = _of_dimensions[self._dimensions]
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation), False, each(0), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._dimensions
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Convolution of signals.

    Shape: (N, C, L) or (C, L). The weight is (out_channels, in_channels / groups, kernel).

    >>> nn.Conv1d(4, 8, 3)(cresset.zeros(2, 4, 10)).shape
    torch.Size([2, 8, 8])
    """

    _dimensions, _convolve = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution of images.

    Shape: (N, C, H, W) or (C, H, W). The weight is (out_channels, in_channels / groups, height, width).

    >>> nn.Conv2d(3, 16, 3, padding=1)
    Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    _dimensions, _convolve = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution of volumes.

    Shape: (N, C, D, H, W) or (C, D, H, W). The weight is (out_channels, in_channels / groups, depth, height, width).
    """

    _dimensions, _convolve = 3, staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution of `_dimensions` spatial dimensions.

    Args:
        output_padding: how much larger the output is on one side, where several sizes are possible.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _of_dimensions[self._dimensions]
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
            each(output_padding),
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        return self._convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _output_padding(self, input, output_size):
        """The output_padding that gives `output_size`."""
        n = self._dimensions
        batched = input.dim() == n + 2
        if len(output_size) == n + 1 + batched:
            output_size = output_size[-n:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + 1 + batched} elements "
                f"(got {len(output_size)})"
            )
        smallest = [
            (input.size(-n + d) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        largest = [smallest[d] + self.stride[d] - 1 for d in range(n)]
        if any(not low <= size <= high for low, size, high in zip(smallest, output_size, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[-n:]})"
            )
        return [size - low for size, low in zip(output_size, smallest, strict=True)]


class _ConvTransposeMixin(_ConvTransposeNd):
    """The former name of the base of transposed convolutions, which packages look for."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            "`_ConvTransposeMixin` is a deprecated internal class. Please consider using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of signals, (N, C, L) or (C, L)."""

    _dimensions, _convolve = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of images, (N, C, H, W) or (C, H, W).

    >>> nn.ConvTranspose2d(8, 4, 2, stride=2)(cresset.zeros(1, 8, 5, 5)).shape
    torch.Size([1, 4, 10, 10])
    """

    _dimensions, _convolve = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of volumes, (N, C, D, H, W) or (C, D, H, W)."""

    _dimensions, _convolve = 3, staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that learns `in_channels` from its first input."""

    def _forget_shapes(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if self.has_uninitialized_params():
            n = self._dimensions
            if input.dim() not in (n + 1, n + 2):
                raise RuntimeError(
                    f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, "
                    f"but got input of size: {input.shape}"
                )
            self.in_channels = input.size(-n - 1)
            if self.in_channels % self.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
        device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._forget_shapes(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._forget_shapes(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that learns `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that learns `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that learns `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
