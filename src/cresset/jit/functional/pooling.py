"""Pooling. Where the result may be one tensor or two, the flag must be known when the program is compiled."""

from typing import List, Optional, Tuple

import cresset as torch
from cresset import Tensor
from cresset._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3, boolean_dispatch
from cresset.nn import functional as F

aten = torch.ops.aten


def _max_pool1d(
    input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def _max_pool1d_with_indices(
    input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool1d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def _max_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def _max_pool2d_with_indices(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool2d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def _max_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def _max_pool3d_with_indices(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.max_pool3d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return aten.adaptive_max_pool1d(input, output_size)[0]


def _adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool1d(input, output_size)


def _filled(input: Tensor, output_size: List[Optional[int]]) -> List[int]:
    sizes: List[int] = []
    for i in range(len(output_size)):
        size = output_size[i]
        sizes.append(input.size(input.dim() - len(output_size) + i) if size is None else size)
    return sizes


def _adaptive_max_pool2d(
    input: Tensor, output_size: BroadcastingList2[Optional[int]], return_indices: bool = False
) -> Tensor:
    return aten.adaptive_max_pool2d(input, _filled(input, output_size))[0]


def _adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[Optional[int]], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool2d(input, _filled(input, output_size))


def _adaptive_max_pool3d(
    input: Tensor, output_size: BroadcastingList3[Optional[int]], return_indices: bool = False
) -> Tensor:
    return aten.adaptive_max_pool3d(input, _filled(input, output_size))[0]


def _adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[Optional[int]], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool3d(input, _filled(input, output_size))


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool2d(input, _filled(input, output_size))


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool3d(input, _filled(input, output_size))


def avg_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None,
) -> Tensor:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.avg_pool2d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None,
) -> Tensor:  # fmt: skip
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return aten.avg_pool3d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    mean = aten.avg_pool1d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return (torch.sign(mean) * torch.relu(torch.abs(mean))).mul(kernel_size[0]).pow(1.0 / norm_type)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    mean = aten.avg_pool2d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return (torch.sign(mean) * torch.relu(torch.abs(mean))).mul(kernel_size[0] * kernel_size[1]).pow(1.0 / norm_type)


def _dispatch(name, index, with_indices, without):
    return boolean_dispatch("return_indices", index, False, with_indices, without, __name__, name)


STANDS_FOR = {
    F: {
        "max_pool1d": _dispatch("max_pool1d", 6, _max_pool1d_with_indices, _max_pool1d),
        "max_pool2d": _dispatch("max_pool2d", 6, _max_pool2d_with_indices, _max_pool2d),
        "max_pool3d": _dispatch("max_pool3d", 6, _max_pool3d_with_indices, _max_pool3d),
        "max_pool1d_with_indices": _max_pool1d_with_indices,
        "max_pool2d_with_indices": _max_pool2d_with_indices,
        "max_pool3d_with_indices": _max_pool3d_with_indices,
        "adaptive_max_pool1d": _dispatch(
            "adaptive_max_pool1d", 2, _adaptive_max_pool1d_with_indices, _adaptive_max_pool1d
        ),
        "adaptive_max_pool2d": _dispatch(
            "adaptive_max_pool2d", 2, _adaptive_max_pool2d_with_indices, _adaptive_max_pool2d
        ),
        "adaptive_max_pool3d": _dispatch(
            "adaptive_max_pool3d", 2, _adaptive_max_pool3d_with_indices, _adaptive_max_pool3d
        ),
        "adaptive_avg_pool2d": adaptive_avg_pool2d,
        "adaptive_avg_pool3d": adaptive_avg_pool3d,
        "avg_pool2d": avg_pool2d,
        "avg_pool3d": avg_pool3d,
        "lp_pool1d": lp_pool1d,
        "lp_pool2d": lp_pool2d,
    }
}
