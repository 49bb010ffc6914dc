"""Patches of images as columns and back, and unpooling."""

from typing import List, Optional

import cresset as torch
from cresset import Tensor, nn
from cresset._jit_internal import BroadcastingList2
from cresset.nn import functional as F

aten = torch.ops.aten


def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return aten.col2im(input, output_size, kernel_size, dilation, padding, stride)


def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return aten.im2col(input, kernel_size, dilation, padding, stride)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes: List[int] = []
    for i in range(2):
        sizes.append((input.size(input.dim() - 2 + i) - 1) * steps[i] + kernel_size[i] - 2 * padding[i])
    if output_size is not None:
        sizes = output_size[len(output_size) - 2 :]
    shape = input.size()[:-2]
    empty = torch.zeros(shape + [sizes[0] * sizes[1]], dtype=input.dtype, device=input.device)
    return empty.scatter_(-1, indices.flatten(-2), input.flatten(-2)).view(shape + sizes)


def max_unpool2d_forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


STANDS_FOR = {
    F: {"fold": fold, "unfold": unfold, "max_unpool2d": max_unpool2d},
    "methods": {(nn.MaxUnpool2d, "forward"): max_unpool2d_forward},
}
