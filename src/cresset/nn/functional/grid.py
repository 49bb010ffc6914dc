"""Reading images and volumes at places given by a grid, and the grids of affine maps."""

import math
import warnings

import cresset

from ...ops.autocast import autocast
from ...ops.grid import MODES, PADDINGS, sampled

_CHANGED = (
    "Default {0} behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old "
    "behavior is desired. See the documentation of grid_sample for details."
)

# What the numbers of torch.grid_sampler stand for.
GRID_SAMPLE_INTERPOLATION_MODES = {mode: number for number, mode in enumerate(MODES)}
GRID_SAMPLE_PADDING_MODES = {padding: number for number, padding in enumerate(PADDINGS)}


@autocast(cpu="float32", cuda="promote")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The values of `input` at the places in `grid`.

    Args:
        input: images (N, C, H, W) or volumes (N, C, D, H, W).
        grid: (N, H', W', 2) or (N, D', H', W', 3): x, y (and z) from -1 to 1.
        mode: "bilinear", "nearest", or for images "bicubic".
        padding_mode: what is outside: "zeros", "border" (the nearest element) or "reflection".
        align_corners: -1 and 1 are the centers of the corner elements, instead of their outer corners.

    >>> image = cresset.tensor([[[[1.0, 3.0]]]])
    >>> F.grid_sample(image, cresset.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.]]]])
    """
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_CHANGED.format("grid_sample and affine_grid"), stacklevel=3)  # beyond autocast
        align_corners = False
    check_places(input, grid)
    spatial = input.ndim - 2
    if spatial not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
            f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if mode == "bicubic" and spatial == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has "
            f"{grid.dtype}"
        )

    # On the CPU PyTorch rounds coordinates in half precision at each step. So does the kernel, but not in reflections.
    halves = input.device.type == "cpu" and input.dtype in (cresset.float16, cresset.bfloat16)
    reflects = halves and padding_mode == "reflection"
    if reflects or not input.dtype.is_floating_point or math.prod(input.shape[2:]) >= 2**31:  # kernels count in 32 bits
        samples = sampled(input, grid, mode, padding_mode, bool(align_corners))
        return samples + grid.flatten()[:0].sum() if mode == "nearest" else samples  # a gradient of zeros
    return cresset._grid_sample(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), bool(align_corners))


def check_places(input, grid):
    """Refuse a grid whose batch, or whose number of coordinates, is not the input's; whatever both are otherwise."""
    if input.size(0) != grid.size(0):
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, "
            f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.size(-1) != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but got {list(input.shape)}"
        )


def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` that applies an affine map to an image or volume of `size`.

    Args:
        theta: (N, 2, 3) for size (N, C, H, W), or (N, 3, 4) for size (N, C, D, H, W).

    >>> theta = cresset.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> F.affine_grid(theta, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if align_corners is None:
        warnings.warn(_CHANGED.format("grid_sample and affine_grid"), stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = tuple(size)
    spatial = len(size) - 2
    if spatial not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    if theta.ndim != 3 or theta.shape[-2:] != (spatial, spatial + 1):
        raise ValueError(
            f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    lines = [_line(n, align_corners, theta) for n in reversed(size[2:])]  # x, y, (z)
    # A sum of one term for each direction, and of the shift: only the last sum is as large as the grid.
    wide = theta.float() if theta.dtype in (cresset.float16, cresset.bfloat16) else theta
    *directions, grid = (column.reshape(theta.size(0), *[1] * spatial, spatial) for column in wide.unbind(2))
    for k in reversed(range(spatial)):
        places = lines[k].reshape([*[1] * (spatial - 1 - k), lines[k].numel(), *[1] * (k + 1)])
        grid = grid + places * directions[k]
    return grid.to(theta.dtype)


def _line(count, align_corners, like):
    """`count` places between -1 and 1: the ends included, or in the middle of `count` equal parts."""
    if count <= 1:
        return like.new_zeros(count)
    line = cresset.linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    # Rounded twice, as PyTorch does: a place at the border of two pixels lies on the same side.
    return line if align_corners else line * (count - 1) / count
