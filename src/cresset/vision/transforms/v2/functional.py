"""torchvision.transforms.v2.functional, where it is simple: the functions of transforms.functional, and v2's own for
images. Boxes, masks and video have no types of their own here.
"""

import cresset
from cresset import Tensor

from ... import pictures
from .. import functional as images
from ..functional import *  # noqa: F403
from ..functional import __all__ as _of_images

__all__ = [
    *_of_images,
    "get_num_channels",
    "get_size",
    "grayscale_to_rgb",
    "horizontal_flip",
    "to_dtype",
    "to_dtype_image",
    "to_image",
    "vertical_flip",
]

get_num_channels = images.get_image_num_channels
horizontal_flip, vertical_flip = images.hflip, images.vflip


def get_size(inpt):
    """[height, width].

    >>> cresset.vision.transforms.v2.functional.get_size(cresset.zeros(3, 4, 5))
    [4, 5]
    """
    return images.get_dimensions(inpt)[1:]


def to_image(inpt):
    """A picture or an array (height, width, channels) as a tensor (channels, height, width) of its own numbers.

    >>> cresset.vision.transforms.v2.functional.to_image(cresset.zeros(4, 5)).shape
    torch.Size([1, 4, 5])
    """
    if pictures.is_picture(inpt):
        return images.pil_to_tensor(inpt)
    if pictures.is_array(inpt):
        array = inpt[:, :, None] if inpt.ndim == 2 else inpt
        return cresset.from_numpy(array.transpose(2, 0, 1).copy())
    if not isinstance(inpt, Tensor):
        raise TypeError(f"to_image: expected a tensor, a NumPy array or a PIL image, got {type(inpt).__name__}")
    return inpt if inpt.ndim > 2 else inpt[None]


def to_dtype_image(image, dtype=cresset.float, scale=False):
    """A tensor in another dtype; with `scale`, black stays black and white stays white.

    >>> cresset.vision.transforms.v2.functional.to_dtype(cresset.tensor([[0, 255]], dtype=cresset.uint8), scale=True)
    tensor([[0., 1.]])
    """
    return images.convert_image_dtype(image, dtype) if scale else image.to(dtype)


def to_dtype(inpt, dtype=cresset.float, scale=False):
    """What is no tensor stays as it is; a tensor: see to_dtype_image."""
    return to_dtype_image(inpt, dtype, scale) if isinstance(inpt, Tensor) else inpt


def grayscale_to_rgb(inpt):
    """An image with three channels: a gray one has its numbers in each.

    >>> cresset.vision.transforms.v2.functional.grayscale_to_rgb(cresset.zeros(1, 4, 5)).shape
    torch.Size([3, 4, 5])
    """
    if pictures.is_picture(inpt):
        return inpt.convert("RGB")
    return inpt if get_num_channels(inpt) >= 3 else images.rgb_to_grayscale(inpt, 3)
