"""Resizing of signals, images and volumes."""

from typing import List, Optional

import cresset as torch
from cresset import Tensor
from cresset.nn import functional as F

aten = torch.ops.aten


def interpolate(
    input: Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    count = input.dim() - 2
    sizes: Optional[List[int]] = None
    scales: Optional[List[float]] = None
    if isinstance(size, int):
        sizes = [size] * count
    elif size is not None:
        sizes = [int(one) for one in size]
    if isinstance(scale_factor, (int, float)):
        scales = [float(scale_factor)] * count
    elif scale_factor is not None:
        scales = [float(one) for one in scale_factor]
    if sizes is not None and scales is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if sizes is None and scales is None:
        raise ValueError("either size or scale_factor should be defined")
    if scales is not None and (mode == "area" or (recompute_scale_factor is not None and recompute_scale_factor)):
        sizes = torch.jit.annotate(List[int], [])
        for i in range(count):
            sizes.append(int(float(input.size(i + 2)) * scales[i]))
        scales = None
    return resized(input, sizes, scales, mode, align_corners is not None and align_corners, antialias)


def resized(
    input: Tensor, sizes: Optional[List[int]], scales: Optional[List[float]], mode: str, align: bool, antialias: bool
) -> Tensor:
    if antialias:
        if mode == "bilinear":
            return aten._upsample_bilinear2d_aa(input, sizes, align, scales)
        if mode == "bicubic":
            return aten._upsample_bicubic2d_aa(input, sizes, align, scales)
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if input.dim() == 3:
        if mode == "nearest":
            return aten.upsample_nearest1d(input, sizes, scales)
        if mode == "nearest-exact":
            return aten._upsample_nearest_exact1d(input, sizes, scales)
        if mode == "linear":
            return aten.upsample_linear1d(input, sizes, align, scales)
        if mode == "area" and sizes is not None:
            return aten.adaptive_avg_pool1d(input, sizes)
    if input.dim() == 4:
        if mode == "nearest":
            return aten.upsample_nearest2d(input, sizes, scales)
        if mode == "nearest-exact":
            return aten._upsample_nearest_exact2d(input, sizes, scales)
        if mode == "bilinear":
            return aten.upsample_bilinear2d(input, sizes, align, scales)
        if mode == "bicubic":
            return aten.upsample_bicubic2d(input, sizes, align, scales)
        if mode == "area" and sizes is not None:
            return aten.adaptive_avg_pool2d(input, sizes)
    if input.dim() == 5:
        if mode == "nearest":
            return aten.upsample_nearest3d(input, sizes, scales)
        if mode == "nearest-exact":
            return aten._upsample_nearest_exact3d(input, sizes, scales)
        if mode == "trilinear":
            return aten.upsample_trilinear3d(input, sizes, align, scales)
        if mode == "area" and sizes is not None:
            return aten.adaptive_avg_pool3d(input, sizes)
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
        f"linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
    )


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:
    if mode == "bilinear":
        number = 0
    elif mode == "nearest":
        number = 1
    elif mode == "bicubic":
        number = 2
    else:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode == "zeros":
        outside = 0
    elif padding_mode == "border":
        outside = 1
    elif padding_mode == "reflection":
        outside = 2
    else:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return aten.grid_sampler(input, grid, number, outside, align_corners is not None and align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return aten.affine_grid_generator(theta, size, align_corners is not None and align_corners)


STANDS_FOR = {
    F: {"interpolate": interpolate, "upsample": interpolate, "grid_sample": grid_sample, "affine_grid": affine_grid}
}
