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


def _unpooled_size(
    sizes: List[int], kernel: List[int], stride: List[int], padding: List[int], output_size: Optional[List[int]]
) -> List[int]:
    rank = len(kernel)
    default: List[int] = []
    for i in range(rank):
        default.append((sizes[len(sizes) - rank + i] - 1) * stride[i] + kernel[i] - 2 * padding[i])
    if output_size is None:
        return default
    wanted = output_size[2:] if len(output_size) == rank + 2 else output_size
    if len(wanted) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, got {len(wanted)}"
        )
    for i in range(rank):
        if wanted[i] <= default[i] - stride[i] or wanted[i] >= default[i] + stride[i]:
            raise ValueError(f"invalid output_size (dim {i} is {wanted[i]}, and {default[i]} without it)")
    return wanted


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    size = _unpooled_size(input.size(), kernel_size, steps, padding, output_size)
    return aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [size[0], 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    return aten.max_unpool2d(input, indices, _unpooled_size(input.size(), kernel_size, steps, padding, output_size))


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    size = _unpooled_size(input.size(), kernel_size, steps, padding, output_size)
    return aten.max_unpool3d(input, indices, size, steps, padding)


def _random_size(
    input: Tensor, rank: int, output_size: Optional[List[int]], output_ratio: Optional[List[float]]
) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError(f"fractional_max_pool{rank}d requires specifying either an output_size or an output_ratio")
    sizes: List[int] = []
    for i in range(rank):
        sizes.append(int(input.size(i - rank) * output_ratio[i]))
    return sizes


def _random_places(input: Tensor, rank: int, samples: Optional[Tensor]) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == rank + 1 else input.size(0)
    return torch.rand([batch, input.size(-rank - 1), rank], dtype=input.dtype, device=input.device)


def _fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    size = _random_size(input, 2, output_size, output_ratio)
    return aten.fractional_max_pool2d(input, kernel_size, size, _random_places(input, 2, _random_samples))


def _fractional_max_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    size = _random_size(input, 2, output_size, output_ratio)
    return aten.fractional_max_pool2d(input, kernel_size, size, _random_places(input, 2, _random_samples))[0]


def _fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    size = _random_size(input, 3, output_size, output_ratio)
    return aten.fractional_max_pool3d(input, kernel_size, size, _random_places(input, 3, _random_samples))


def _fractional_max_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    size = _random_size(input, 3, output_size, output_ratio)
    return aten.fractional_max_pool3d(input, kernel_size, size, _random_places(input, 3, _random_samples))[0]


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
        "max_unpool1d": max_unpool1d,
        "max_unpool2d": max_unpool2d,
        "max_unpool3d": max_unpool3d,
        "fractional_max_pool2d": _dispatch(
            "fractional_max_pool2d", 4, _fractional_max_pool2d_with_indices, _fractional_max_pool2d
        ),
        "fractional_max_pool3d": _dispatch(
            "fractional_max_pool3d", 4, _fractional_max_pool3d_with_indices, _fractional_max_pool3d
        ),
    }
}
