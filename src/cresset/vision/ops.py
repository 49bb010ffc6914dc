"""torchvision.ops: boxes, and the layers that models share. Boxes are rows (x1, y1, x2, y2) unless a function says
otherwise.
"""

import cresset
from cresset import Tensor, nn
from cresset.nn import functional as F

from .models.convnext import Permute
from .models.layers import MLP, Conv2dNormActivation, SqueezeExcitation, StochasticDepth

__all__ = [
    "MLP", "Conv2dNormActivation", "Permute", "RoIAlign", "SqueezeExcitation", "StochasticDepth", "batched_nms",
    "box_area", "box_convert", "box_iou",
    "clip_boxes_to_image", "generalized_box_iou", "masks_to_boxes", "nms", "remove_small_boxes", "roi_align",
    "sigmoid_focal_loss",
]  # fmt: skip


def _check_boxes(who, boxes):
    if not isinstance(boxes, Tensor) or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(
            f"{who}: boxes are a tensor of shape (N, 4), got "
            f"{tuple(boxes.shape) if isinstance(boxes, Tensor) else type(boxes).__name__}"
        )


def _wide(x):
    """Numbers in which products of coordinates fit."""
    if x.dtype.is_floating_point:
        return x if x.dtype in (cresset.float32, cresset.float64) else x.float()
    return x if x.dtype in (cresset.int32, cresset.int64) else x.int()


def box_area(boxes, fmt="xyxy"):
    """The area of each box.

    >>> cresset.vision.ops.box_area(cresset.tensor([[0.0, 0.0, 2.0, 3.0]]))
    tensor([6.])
    """
    boxes = _wide(boxes if fmt == "xyxy" else box_convert(boxes, fmt, "xyxy"))
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def box_convert(boxes, in_fmt, out_fmt):
    """Boxes in another form: "xyxy" (corners), "xywh" (corner and size) or "cxcywh" (middle and size).

    >>> cresset.vision.ops.box_convert(cresset.tensor([[0.0, 0.0, 2.0, 4.0]]), "xyxy", "cxcywh")
    tensor([[1., 2., 2., 4.]])
    """
    for form in (in_fmt, out_fmt):
        if form not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError(f"box_convert: the forms are xyxy, xywh and cxcywh, got {form!r}")
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        a, b, c, d = a, b, c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return cresset.stack([a, b, c, d], -1).to(boxes.dtype)


def _intersection_and_union(boxes1, boxes2):
    low = cresset.maximum(boxes1[..., :, None, :2], boxes2[..., None, :, :2])
    high = cresset.minimum(boxes1[..., :, None, 2:], boxes2[..., None, :, 2:])
    sides = _wide(high - low).clamp(min=0)
    intersection = sides[..., 0] * sides[..., 1]
    return intersection, box_area(boxes1)[..., :, None] + box_area(boxes2)[..., None, :] - intersection


def box_iou(boxes1, boxes2, fmt="xyxy"):
    """The intersection over the union of each of N boxes with each of M, shape (N, M).

    >>> cresset.vision.ops.box_iou(cresset.tensor([[0.0, 0.0, 2.0, 2.0]]), cresset.tensor([[1.0, 0.0, 3.0, 2.0]]))
    tensor([[0.3333]])
    """
    if fmt != "xyxy":
        boxes1, boxes2 = (box_convert(boxes, fmt, "xyxy") for boxes in (boxes1, boxes2))
    intersection, union = _intersection_and_union(boxes1, boxes2)
    return intersection / union


def generalized_box_iou(boxes1, boxes2):
    """box_iou less the share of the smallest enclosing box that neither covers."""
    intersection, union = _intersection_and_union(boxes1, boxes2)
    low = cresset.minimum(boxes1[..., :, None, :2], boxes2[..., None, :, :2])
    high = cresset.maximum(boxes1[..., :, None, 2:], boxes2[..., None, :, 2:])
    sides = _wide(high - low).clamp(min=0)
    hull = sides[..., 0] * sides[..., 1]
    return intersection / union - (hull - union) / hull


def nms(boxes, scores, iou_threshold):
    """The indices of the boxes that stay, best first: each takes away later ones that overlap it by more than the
    threshold.

    >>> boxes = cresset.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.1], [5.0, 5.0, 6.0, 6.0]])
    >>> cresset.vision.ops.nms(boxes, cresset.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    _check_boxes("nms", boxes)
    if scores.ndim != 1 or len(scores) != len(boxes):
        raise RuntimeError(
            f"nms: boxes and scores should have the same number of elements in dimension 0, got {len(boxes)} and "
            f"shape {tuple(scores.shape)}"
        )
    left = scores.argsort(descending=True, stable=True)
    kept = []
    while len(left):
        kept.append(left[0])
        overlap = box_iou(boxes[left[:1]], boxes[left[1:]])[0]
        left = left[1:][~(overlap > iou_threshold)]
    return cresset.stack(kept) if kept else cresset.empty(0, dtype=cresset.int64, device=boxes.device)


def batched_nms(boxes, scores, idxs, iou_threshold):
    """nms within each group of `idxs`: boxes of different groups do not take each other away."""
    if boxes.numel() == 0:
        return cresset.empty(0, dtype=cresset.int64, device=boxes.device)
    apart = idxs.to(boxes) * (boxes.max() + 1)  # far enough that groups never meet
    return nms(boxes + apart[:, None], scores, iou_threshold)


def remove_small_boxes(boxes, min_size):
    """The indices of the boxes whose sides both have at least `min_size`."""
    sides = boxes[:, 2:] - boxes[:, :2]
    return (sides >= min_size).all(1).nonzero()[:, 0]


def clip_boxes_to_image(boxes, size):
    """The boxes cut off at the borders of an image of `size` (height, width)."""
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return cresset.stack([x, y], -1).reshape(boxes.shape)


def masks_to_boxes(masks):
    """The box around the pixels of each mask (N, height, width) that are not zero."""
    found = []
    for mask in masks:
        points = mask.nonzero()
        if len(points) == 0:
            raise ValueError("masks_to_boxes: a mask is empty, so there is no box around it")
        (y1, x1), (y2, x2) = points.amin(0).tolist(), points.amax(0).tolist()
        found.append([x1, y1, x2, y2])
    return cresset.tensor(found, dtype=cresset.float32, device=masks.device).view(-1, 4)


def _as_rows(boxes):
    """Boxes as rows (index of the image, x1, y1, x2, y2)."""
    if isinstance(boxes, Tensor):
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise ValueError(
                f"roi_align: boxes are a list of (L, 4) or one (K, 5) tensor, got shape {tuple(boxes.shape)}"
            )
        return boxes
    rows = [cresset.cat([cresset.full_like(part[:, :1], index), part], 1) for index, part in enumerate(boxes)]
    return cresset.cat(rows)


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    """Each box of (N, C, H, W) as a grid of `output_size`: the means of points read between pixels, shape (K, C,
    height, width).

    Args:
        boxes: for each image a tensor (L, 4), or one tensor (K, 5) whose first column is the index of the image.
        spatial_scale: from the boxes' coordinates to the input's.
        sampling_ratio: points for each cell along each side; as many as a cell has pixels if it is not positive.
        aligned: pixels have their middles at .5, as they should; False is the older way.
    """
    rows = _as_rows(boxes).to(input.dtype)
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    if len(rows) == 0:
        return input.new_empty(0, input.shape[1], height, width)
    return cresset.stack(
        [_align_one(input, row, height, width, spatial_scale, sampling_ratio, aligned) for row in rows]
    )


def _align_one(input, row, height, width, spatial_scale, sampling_ratio, aligned):
    index, *corners = row.tolist()
    x1, y1, x2, y2 = (corner * spatial_scale - (0.5 if aligned else 0.0) for corner in corners)
    box_width, box_height = x2 - x1, y2 - y1
    if not aligned:
        box_width, box_height = max(box_width, 1.0), max(box_height, 1.0)
    down = sampling_ratio if sampling_ratio > 0 else max(-int(-box_height // height), 1)
    across = sampling_ratio if sampling_ratio > 0 else max(-int(-box_width // width), 1)
    place = lambda count: (cresset.arange(count, dtype=input.dtype, device=input.device) + 0.5) / count
    y, x = y1 + box_height * place(height * down), x1 + box_width * place(width * across)
    values = _between_pixels(_between_pixels(input[int(index)], y, -2), x, -1)
    return F.avg_pool2d(values[None], (down, across))[0]


def _between_pixels(image, at, dim):
    """`image` read along `dim` at real positions; zero more than a pixel outside."""
    size = image.shape[dim]
    outside = (at < -1.0) | (at > size)
    at = at.clamp(0, size - 1)
    low = at.floor().to(cresset.int64)
    high = (low + 1).clamp(max=size - 1)
    share = (at - low).masked_fill(outside, 0.0)
    rest = (1.0 - (at - low)).masked_fill(outside, 0.0)
    if dim == -2:
        share, rest = share[:, None], rest[:, None]
    return image.index_select(dim, low) * rest + image.index_select(dim, high) * share


class RoIAlign(nn.Module):
    """roi_align as a layer."""

    def __init__(self, output_size, spatial_scale, sampling_ratio, aligned=False):
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned = (
            output_size,
            spatial_scale,
            sampling_ratio,
            aligned,
        )

    def forward(self, input, rois):
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def __repr__(self):
        return (
            f"RoIAlign(output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned})"
        )


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    """Binary cross entropy that looks less at what is classified well: times (1 - p) ** gamma, and alpha for the
    ones."""
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"sigmoid_focal_loss: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    p = inputs.sigmoid()
    right = p * targets + (1 - p) * (1 - targets)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss if reduction == "none" else getattr(loss, reduction)()
