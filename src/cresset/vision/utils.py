"""torchvision.utils: many images in one, images to files, boxes on images."""

import math

import cresset
from cresset import Tensor

from .pictures import from_bytes_tensor, pillow, to_bytes_tensor

__all__ = ["draw_bounding_boxes", "make_grid", "save_image"]


@cresset.no_grad()
def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    """Images (N, C, H, W), or a list of them, side by side in one.

    Args:
        nrow: images in a row.
        padding: pixels between them, of `pad_value`.
        normalize: move the numbers from `value_range`, or from their own least and largest, to [0, 1]; of each image
            alone with `scale_each`.

    >>> cresset.vision.utils.make_grid(cresset.zeros(5, 3, 4, 4), nrow=3).shape
    torch.Size([3, 14, 20])
    """
    if not isinstance(tensor, Tensor) and not (isinstance(tensor, list) and all(isinstance(t, Tensor) for t in tensor)):
        raise TypeError(f"make_grid: expected a tensor or a list of tensors, got {type(tensor).__name__}")
    images = cresset.stack(tensor) if isinstance(tensor, list) else tensor
    if images.ndim not in (2, 3, 4):
        raise ValueError(f"make_grid: expected 2 to 4 dimensions, got shape {tuple(images.shape)}")
    images = images[None] if images.ndim == 2 else images
    images = images[None] if images.ndim == 3 else images
    if images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    if normalize:
        images = _normalized(images.clone(), value_range, scale_each)
    if len(images) == 1:
        return images[0]
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = images.new_full((channels, height * rows + padding, width * columns + padding), pad_value)
    for position, image in enumerate(images):
        top, left = position // columns * height + padding, position % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = image
    return grid


def _normalized(images, value_range, scale_each):
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError(f"make_grid: value_range must be a tuple (least, largest), got {type(value_range).__name__}")
    for image in images if scale_each else [images]:
        low, high = value_range or (float(image.min()), float(image.max()))
        image.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    return images


@cresset.no_grad()
def save_image(tensor, fp, format=None, **kwargs):
    """make_grid of numbers from 0 to 1, as a picture in a file. Further arguments go to make_grid."""
    grid = make_grid(tensor, **kwargs)
    picture = from_bytes_tensor(grid.mul(255).add_(0.5).clamp_(0, 255).to("cpu", cresset.uint8), "RGB")
    picture.save(fp, format=format)


@cresset.no_grad()
def draw_bounding_boxes(image, boxes, labels=None, colors=None, fill=False, width=1, font=None, font_size=None):
    """`image` (3, H, W) with `boxes` (N, 4), each (x1, y1, x2, y2), drawn on it.

    Args:
        labels: a text for each box.
        colors: one for all, or one for each: a name, "#rrggbb" or (red, green, blue).
        fill: color the inside, too, half transparent.
    """
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ValueError("draw_bounding_boxes: expected an image tensor of shape (3, H, W) or (1, H, W)")
    if not (image.dtype == cresset.uint8 or image.dtype.is_floating_point):
        raise ValueError(f"draw_bounding_boxes: the image must be uint8 or floating point, got {image.dtype}")
    if labels is not None and len(labels) != len(boxes):
        raise ValueError(f"draw_bounding_boxes: {len(boxes)} boxes have {len(labels)} labels")
    if isinstance(colors, list) and len(colors) < len(boxes):
        raise ValueError(f"draw_bounding_boxes: {len(boxes)} boxes have {len(colors)} colors")
    if len(boxes) and ((boxes[:, 0] > boxes[:, 2]).any() or (boxes[:, 1] > boxes[:, 3]).any()):
        raise ValueError(
            "draw_bounding_boxes: a box has its right side left of its left side, or its bottom above its top"
        )
    plain = image if image.dtype == cresset.uint8 else image.mul(255).clamp(0, 255).to(cresset.uint8)
    picture = from_bytes_tensor(plain.expand(3, -1, -1).cpu(), "RGB")
    pencil = pillow("draw_bounding_boxes", "ImageDraw").Draw(picture, "RGBA" if fill else None)
    color_of = pillow("draw_bounding_boxes", "ImageColor").getrgb
    letters = pillow("draw_bounding_boxes", "ImageFont").truetype(font, font_size or 10) if font else None
    for position, box in enumerate(boxes.tolist()):
        color = colors[position] if isinstance(colors, list) else colors if colors is not None else _color(position)
        color = tuple((color_of(color) if isinstance(color, str) else color)[:3])
        pencil.rectangle(box, outline=color, width=width, fill=(*color, 100) if fill else None)
        if labels is not None and labels[position] is not None:
            pencil.text((box[0] + width + 1, box[1] + width + 1), labels[position], fill=color, font=letters)
    drawn = to_bytes_tensor(picture)
    return drawn if image.dtype == cresset.uint8 else drawn.to(image.dtype) / 255


def _color(position):
    """A color that differs from its neighbors': steps around the circle of hues by the golden ratio."""
    import colorsys

    return tuple(int(255 * part) for part in colorsys.hsv_to_rgb(position * 0.618034 % 1.0, 1.0, 1.0))
