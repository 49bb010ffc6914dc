"""Regions of feature maps as grids of a fixed size: max and mean over their pixels, position-sensitive forms, and
convolution at moved places.

All are made of operators, so that their derivatives come by themselves.
"""

import math

import cresset

from .ops import roi_align

__all__ = ["deform_conv2d", "ps_roi_align", "ps_roi_pool", "roi_pool"]


def _rounded(x):
    """To the nearest whole number, halves away from zero."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def _cells(first, length, count, size):
    """Which pixels of a side belong to which cell: a mask (count, size)."""
    step = length / count
    edges = [(math.floor(k * step) + first, math.ceil((k + 1) * step) + first) for k in range(count)]
    places = cresset.arange(size)
    return cresset.stack([(places >= max(low, 0)) & (places < min(high, size)) for low, high in edges])


def _corners(row, spatial_scale):
    index, *corners = row.tolist()
    return int(index), [_rounded(corner * spatial_scale) for corner in corners]


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest value in each cell of each region, and where it stands in its map (-1: the cell is empty, and its
    value 0).

    Args:
        rois: rows (index of the image, x1, y1, x2, y2).
    """
    _, channels, height, width = input.shape
    values, places = [], []
    for row in rois:
        index, (x1, y1, x2, y2) = _corners(row, spatial_scale)
        down = _cells(y1, max(y2 - y1 + 1, 1), pooled_height, height).to(input.device)
        across = _cells(x1, max(x2 - x1 + 1, 1), pooled_width, width).to(input.device)
        # First the largest of a row of pixels within a column of cells, then the largest of those.
        image = input[index][:, :, None].masked_fill(~across, -math.inf)
        best, columns = image.max(-1)  # (channels, height, pooled_width)
        best, rows = best[:, None].masked_fill(~down[:, :, None], -math.inf).max(2)
        columns = columns[:, None].expand(-1, pooled_height, -1, -1).gather(2, rows.unsqueeze(2)).squeeze(2)
        empty = ~(down.any(1)[:, None] & across.any(1))
        values.append(best.masked_fill(empty, 0))
        places.append((rows * width + columns).masked_fill(empty, -1))
    if not values:
        shape = (0, channels, pooled_height, pooled_width)
        return input.new_empty(shape), input.new_empty(shape, dtype=cresset.int32)
    return cresset.stack(values), cresset.stack(places).to(cresset.int32)


def _position_sensitive(maps, pooled_height, pooled_width):
    """From (K, groups * cells, height, width): in each cell the channel that belongs to it, and those channels'
    numbers.
    """
    cells = pooled_height * pooled_width
    if maps.shape[1] % cells:
        raise RuntimeError(
            f"input channels must be a multiple of pooling height * pooling width: got {maps.shape[1]} channels and "
            f"{pooled_height} * {pooled_width} cells"
        )
    groups = maps.shape[1] // cells
    numbers = (
        cresset.arange(groups * cells, device=maps.device)
        .view(groups, pooled_height, pooled_width)
        .expand(len(maps), -1, -1, -1)
    )
    return maps.reshape(len(maps), groups, cells, cells).diagonal(0, 2, 3).reshape(numbers.shape), numbers.to(
        cresset.int32
    )


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """`roi_align`, with channels of their own for each cell."""
    aligned = roi_align(input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned=True)
    return _position_sensitive(aligned, pooled_height, pooled_width)


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The mean over each cell of each region, with channels of their own for each cell."""
    means = []
    for row in rois:
        index, (x1, y1, x2, y2) = _corners(row, spatial_scale)
        down = _cells(y1, max(y2 - y1, 1), pooled_height, input.shape[2]).to(input)
        across = _cells(x1, max(x2 - x1, 1), pooled_width, input.shape[3]).to(input)
        area = (down.sum(1)[:, None] * across.sum(1)).clamp(min=1)
        means.append(down @ input[index] @ across.mT / area)
    if not means:
        means = input.new_empty(0, input.shape[1], pooled_height, pooled_width)
        return _position_sensitive(means, pooled_height, pooled_width)
    return _position_sensitive(cresset.stack(means), pooled_height, pooled_width)


def _read(image, y, x):
    """`image` (N, G, C, H, W) read between its pixels at places (N, G, P), zero outside: (N, G, C, P)."""
    height, width = image.shape[-2:]
    flat = image.flatten(-2)
    top, left = y.floor(), x.floor()
    total = 0
    for row, row_share in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, column_share in ((left, 1 - (x - left)), (left + 1, x - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            places = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).to(cresset.int64)
            found = flat.gather(-1, places[:, :, None].expand(-1, -1, flat.shape[2], -1))
            total = total + found * (row_share * column_share * inside)[:, :, None]
    return total


def deform_conv2d(input, weight, offset, mask, bias, stride, padding, dilation, groups, offset_groups, use_mask):
    """A convolution whose kernel reads at places moved by `offset`, weighted by `mask` if `use_mask`.

    Shape: input (N, C, H, W), weight (out, C / groups, h, w), offset (N, 2 * offset_groups * h * w, H', W') with y
        before x,
    mask (N, offset_groups * h * w, H', W'); the output is (N, out, H', W').
    """
    count, channels, _, _ = input.shape
    out_channels, _, kernel_height, kernel_width = weight.shape
    out_height, out_width = offset.shape[-2:]
    taps = kernel_height * kernel_width
    along = lambda size, axis: (
        cresset.arange(size, dtype=input.dtype, device=input.device) * stride[axis] - padding[axis]
    )
    tap = lambda size, axis: cresset.arange(size, dtype=input.dtype, device=input.device) * dilation[axis]
    y = (tap(kernel_height, 0)[:, None, None, None] + along(out_height, 0)[:, None]).expand(
        -1, kernel_width, -1, out_width
    )
    x = (tap(kernel_width, 1)[None, :, None, None] + along(out_width, 1)).expand(kernel_height, -1, out_height, -1)
    moved = offset.view(count, offset_groups, taps, 2, out_height, out_width)
    y = y.reshape(taps, out_height, out_width) + moved[:, :, :, 0]
    x = x.reshape(taps, out_height, out_width) + moved[:, :, :, 1]
    parts = input.view(count, offset_groups, channels // offset_groups, *input.shape[-2:])
    columns = _read(parts, y.flatten(2), x.flatten(2)).unflatten(-1, (taps, out_height * out_width))
    if use_mask:
        columns = columns * mask.view(count, offset_groups, 1, taps, out_height * out_width)
    columns = columns.reshape(count, groups, channels // groups * taps, out_height * out_width)
    result = weight.view(groups, out_channels // groups, -1) @ columns
    return result.view(count, out_channels, out_height, out_width) + bias.view(-1, 1, 1)
