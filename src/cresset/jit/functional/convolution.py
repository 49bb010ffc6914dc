"""Convolutional layers."""

from typing import List, Optional

import cresset as torch
from cresset import Tensor, nn
from cresset.nn import functional as F

aten = torch.ops.aten


def conv1d_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return aten.conv1d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
    return aten.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv2d_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return aten.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
    return aten.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv3d_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return aten.conv3d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
    return aten.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def output_padding(
    input: Tensor,
    output_size: List[int],
    stride: List[int],
    padding: List[int],
    kernel_size: List[int],
    dilation: List[int],
) -> List[int]:
    n = len(kernel_size)
    wanted = output_size
    if len(output_size) > n:
        wanted = output_size[len(output_size) - n :]
    if len(wanted) != n:
        raise ValueError(
            f"ConvTranspose: output_size must have {n} elements, or those of the batch and channels before, but got "
            f"{len(output_size)}"
        )
    extra: List[int] = []
    for i in range(n):
        smallest = (
            (input.size(input.dim() - n + i) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1
        )
        if wanted[i] < smallest or wanted[i] > smallest + stride[i] - 1:
            raise ValueError(
                f"ConvTranspose: requested an output size of {output_size}, but the smallest in dimension {i} is "
                f"{smallest}"
            )
        extra.append(wanted[i] - smallest)
    return extra


def conv_transpose1d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    if output_size is None:
        return aten.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )
    extra = output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self.dilation)
    return aten.conv_transpose1d(
        input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
    )


def conv_transpose2d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    if output_size is None:
        return aten.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )
    extra = output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self.dilation)
    return aten.conv_transpose2d(
        input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
    )


def conv_transpose3d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    if output_size is None:
        return aten.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )
    extra = output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self.dilation)
    return aten.conv_transpose3d(
        input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
    )


STANDS_FOR = {
    "methods": {
        (nn.Conv1d, "_conv_forward"): conv1d_forward,
        (nn.Conv2d, "_conv_forward"): conv2d_forward,
        (nn.Conv3d, "_conv_forward"): conv3d_forward,
        (nn.ConvTranspose1d, "forward"): conv_transpose1d_forward,
        (nn.ConvTranspose2d, "forward"): conv_transpose2d_forward,
        (nn.ConvTranspose3d, "forward"): conv_transpose3d_forward,
    }
}
