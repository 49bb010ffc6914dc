"""torchvision.transforms.functional: what can be done to an image, be it a picture of Pillow or a tensor ending in
height and width.
"""

import math
import numbers

import cresset
from cresset import Tensor

from .. import pictures
from . import pillow_images, tensor_images
from .interpolation import InterpolationMode, as_mode

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "adjust_sharpness", "affine",
    "autocontrast", "center_crop", "convert_image_dtype", "crop", "equalize", "erase", "five_crop", "gaussian_blur",
    "get_dimensions", "get_image_num_channels",
    "get_image_size", "hflip", "invert", "normalize", "pad", "perspective", "pil_to_tensor", "posterize", "resize",
    "resized_crop", "rgb_to_grayscale",
    "rotate", "solarize", "ten_crop", "to_grayscale", "to_pil_image", "to_tensor", "vflip",
]  # fmt: skip

_MODES_OF_CHANNELS = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV", "LAB"], 4: ["RGBA", "CMYK", "RGBX"]}


def _kind(who, image):
    """The module that knows how: of pictures or of tensors."""
    pictures.check_image(who, image)
    return pillow_images if pictures.is_picture(image) else tensor_images


def get_dimensions(img):
    """[channels, height, width].

    >>> cresset.vision.transforms.functional.get_dimensions(cresset.zeros(3, 4, 5))
    [3, 4, 5]
    """
    pictures.check_image("get_dimensions", img)
    return list(pictures.size_of(img))


def get_image_size(img):
    """[width, height]."""
    _, height, width = get_dimensions(img)
    return [width, height]


def get_image_num_channels(img):
    """The number of channels."""
    return get_dimensions(img)[0]


# ---------------------------------------------------------------- pictures, arrays and tensors


def to_tensor(pic):
    """A picture or an array (height, width, channels) as a tensor (channels, height, width); bytes become numbers from
    0 to 1.

    >>> picture = cresset.vision.transforms.functional.to_pil_image(cresset.full((1, 1, 2), 255, dtype=cresset.uint8))
    >>> cresset.vision.transforms.functional.to_tensor(picture)
    tensor([[[1., 1.]]])
    """
    if pictures.is_array(pic):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_tensor: an array has 2 or 3 dimensions, got {pic.ndim}")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        image = cresset.from_numpy(array.transpose(2, 0, 1).copy())
    elif pictures.is_picture(pic):
        image = pictures.to_bytes_tensor(pic)
    else:
        raise TypeError(f"to_tensor: expected a PIL image or a NumPy array, got {type(pic).__name__}")
    return image.to(cresset.get_default_dtype()).div(255) if image.dtype == cresset.uint8 else image


def pil_to_tensor(pic):
    """A picture as a tensor (channels, height, width) of the picture's own numbers."""
    if not pictures.is_picture(pic):
        raise TypeError(f"pil_to_tensor: expected a PIL image, got {type(pic).__name__}")
    numbers_of_it = pictures.to_bytes_tensor(pic)
    return numbers_of_it.bool() if pic.mode == "1" else numbers_of_it


def to_pil_image(pic, mode=None):
    """A tensor (channels, height, width), or an array (height, width, channels), as a picture of Pillow.

    Args:
        mode: Pillow's name for the meaning of the channels. If None, it follows from their number and the dtype.
    """
    if isinstance(pic, Tensor):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_pil_image: an image tensor has 2 or 3 dimensions, got {pic.ndim}")
        image = pic[None] if pic.ndim == 2 else pic
        if image.shape[0] > 4:
            raise ValueError(f"to_pil_image: a picture has at most 4 channels, got {image.shape[0]}")
        image = image.detach().cpu()
        if image.dtype.is_floating_point and mode != "F":
            image = image.mul(255).to(cresset.uint8)
    elif pictures.is_array(pic):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_pil_image: an array has 2 or 3 dimensions, got {pic.ndim}")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        if array.shape[2] > 4:
            raise ValueError(f"to_pil_image: a picture has at most 4 channels, got {array.shape[2]}")
        image = cresset.from_numpy(array.transpose(2, 0, 1).copy())
    else:
        raise TypeError(f"to_pil_image: expected a tensor or a NumPy array, got {type(pic).__name__}")
    return pictures.from_bytes_tensor(*_with_mode(image, mode))


def _with_mode(image, mode):
    """(image, mode): what the numbers of a (channels, height, width) tensor mean."""
    channels, dtype = image.shape[0], image.dtype
    if channels == 1:
        expected = {
            cresset.uint8: "L",
            cresset.int16: "I;16",
            cresset.uint16: "I;16",
            cresset.int32: "I",
            cresset.float32: "F",
        }.get(dtype)
        if dtype == cresset.float64:
            image, expected = image.to(cresset.float32), "F"
        if expected is None:
            raise TypeError(f"to_pil_image: there is no picture with one channel of {dtype}")
        if mode is not None and mode != expected:
            raise ValueError(f"to_pil_image: one channel of {dtype} has the mode {expected}, got mode={mode!r}")
        return image, expected
    allowed = _MODES_OF_CHANNELS[channels]
    if mode is not None and mode not in allowed:
        raise ValueError(f"to_pil_image: {channels} channels can have the modes {allowed}, got mode={mode!r}")
    if dtype != cresset.uint8:
        raise TypeError(f"to_pil_image: a picture with {channels} channels is made of uint8, got {dtype}")
    return image, mode or allowed[0]


def convert_image_dtype(image, dtype=cresset.float):
    """`image` in another dtype, black staying black and white staying white.

    >>> cresset.vision.transforms.functional.convert_image_dtype(cresset.tensor([[0, 255]], dtype=cresset.uint8))
    tensor([[0., 1.]])
    """
    if not isinstance(image, Tensor):
        raise TypeError(f"convert_image_dtype: expected a tensor, got {type(image).__name__}")
    return tensor_images.convert_dtype(image, dtype)


def normalize(tensor, mean, std, inplace=False):
    """(tensor - mean) / std, channel by channel.

    >>> cresset.vision.transforms.functional.normalize(cresset.ones(1, 1, 2), [0.5], [0.25])
    tensor([[[2., 2.]]])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"normalize: expected a tensor, got {type(tensor).__name__}")
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"normalize: expected a floating point tensor, got {tensor.dtype}")
    if tensor.ndim < 3:
        raise ValueError(f"normalize: expected (..., channels, height, width), got shape {tuple(tensor.shape)}")
    mean, std = (cresset.as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    if (std == 0).any():
        raise ValueError(f"normalize: std is zero in {tensor.dtype}, which leads to a division by zero")
    mean, std = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (mean, std))
    return tensor.sub_(mean).div_(std) if inplace else tensor.sub(mean).div_(std)


# ---------------------------------------------------------------- sizes


def output_size(who, size, height, width, max_size=None, allow_size_none=False):
    """[height, width] after resizing to `size`: both of them, or the shorter side."""
    if size is None and allow_size_none:
        if not isinstance(max_size, int):
            raise ValueError(f"{who}: size is None, so max_size must be an integer, got {max_size!r}")
        short, long = min(height, width), max(height, width)
        new_short, new_long = int(max_size * short / long), max_size
        return [new_long, new_short] if width <= height else [new_short, new_long]
    size = [size] if isinstance(size, int) else list(size)
    if len(size) not in (1, 2):
        raise ValueError(f"{who}: size has one or two numbers, got {size}")
    if len(size) == 2:
        if max_size is not None:
            raise ValueError(f"{who}: max_size goes with one number for size, got size={size} and max_size={max_size}")
        return size
    short, long = min(height, width), max(height, width)
    new_short, new_long = size[0], int(size[0] * long / short)
    if max_size is not None:
        if max_size <= size[0]:
            raise ValueError(
                f"{who}: max_size = {max_size} must be strictly greater than the requested size for the smaller edge "
                f"size = {size[0]}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def resize(img, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True):
    """`img` at another size.

    Args:
        size: (height, width), or the length of the shorter side, the longer one following.
        interpolation: how pixels between pixels are read.
        max_size: the most that the longer side may have.
        antialias: for tensors, bilinear and bicubic: look at all pixels that fall into one when shrinking. Pictures
            always do.

    >>> cresset.vision.transforms.functional.resize(cresset.ones(1, 4, 6), 2).shape
    torch.Size([1, 2, 3])
    """
    kind, interpolation = _kind("resize", img), as_mode("resize", interpolation)
    _, height, width = pictures.size_of(img)
    size = output_size("resize", size, height, width, max_size)
    if size == [height, width]:
        return img
    if kind is pillow_images:
        return pillow_images.resize(img, size, interpolation)
    return tensor_images.resize(img, size, interpolation, antialias)


def crop(img, top, left, height, width):
    """The part of `img` whose upper left corner is (top, left); zeros where it has none.

    >>> cresset.vision.transforms.functional.crop(cresset.arange(9).view(1, 3, 3), 1, 1, 2, 2)
    tensor([[[4, 5],
             [7, 8]]])
    """
    return _kind("crop", img).crop(img, top, left, height, width)


def _two(who, size):
    if isinstance(size, numbers.Number):
        return int(size), int(size)
    if len(size) == 1:
        return int(size[0]), int(size[0])
    if len(size) != 2:
        raise ValueError(f"{who}: size is one number or (height, width), got {size}")
    return int(size[0]), int(size[1])


def center_crop(img, output_size):
    """The middle of `img`; zeros around it if it is smaller than that."""
    pictures.check_image("center_crop", img)
    height, width = _two("center_crop", output_size)
    _, have_height, have_width = pictures.size_of(img)
    if width > have_width or height > have_height:
        across, down = max(width - have_width, 0), max(height - have_height, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2])
        _, have_height, have_width = pictures.size_of(img)
        if (width, height) == (have_width, have_height):
            return img
    top, left = round((have_height - height) / 2.0), round((have_width - width) / 2.0)
    return crop(img, top, left, height, width)


def resized_crop(img, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR, antialias=True):
    """`crop`, then `resize`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def pad(img, padding, fill=0, padding_mode="constant"):
    """`img` with a border.

    Args:
        padding: one number, (left and right, top and bottom), or (left, top, right, bottom).
        fill: the color of a constant border: one number, or one for each channel.
        padding_mode: "constant", "edge" (the last pixel), "reflect" (without the last pixel) or "symmetric" (with it).

    >>> cresset.vision.transforms.functional.pad(cresset.tensor([[[1, 2]]]), [1, 0], padding_mode="edge")
    tensor([[[1, 1, 2, 2]]])
    """
    kind = _kind("pad", img)
    if not isinstance(padding, (int, list, tuple)):
        raise TypeError(f"pad: padding must be an integer or a list of them, got {type(padding).__name__}")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"pad: padding_mode must be constant, edge, reflect or symmetric, got {padding_mode!r}")
    sides = [padding] if isinstance(padding, int) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(f"pad: padding has 1, 2 or 4 numbers, got {len(sides)}")
    return kind.pad(img, (sides * 4)[:4], fill, padding_mode)


def five_crop(img, size):
    """The four corners and the middle of `img`."""
    height, width = _two("five_crop", size)
    _, have_height, have_width = get_dimensions(img)
    if width > have_width or height > have_height:
        raise ValueError(f"five_crop: a crop of {(height, width)} is larger than the image {(have_height, have_width)}")
    bottom, right = have_height - height, have_width - width
    corners = [crop(img, top, left, height, width) for top in (0, bottom) for left in (0, right)]
    return (*corners, center_crop(img, [height, width]))


def ten_crop(img, size, vertical_flip=False):
    """`five_crop` of the image and of its mirror image."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


# ---------------------------------------------------------------- geometry


def hflip(img):
    """`img` with left and right exchanged.

    >>> cresset.vision.transforms.functional.hflip(cresset.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """
    return _kind("hflip", img).horizontal_flip(img)


def vflip(img):
    """`img` upside down."""
    return _kind("vflip", img).vertical_flip(img)


def _inverse_affine(center, angle, translate, scale, shear):
    """The matrix [[a, b, c], [d, e, f]], row by row, that leads from a pixel of the result to where it comes from.

    Forward, it is: move `center` to the origin, shear, turn, scale, move back and by `translate`.
    """
    turn, shear_x, shear_y = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    rows = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]  # turning and shearing keep areas
    x, y = -center[0] - translate[0], -center[1] - translate[1]
    rows[2] = rows[0] * x + rows[1] * y + center[0]
    rows[5] = rows[3] * x + rows[4] * y + center[1]
    return rows


def _from_middle(center, img):
    """A point given from the upper left corner, seen from the middle of the image."""
    if center is None:
        return [0.0, 0.0]
    _, height, width = pictures.size_of(img)
    return [center[0] - width * 0.5, center[1] - height * 0.5]


def rotate(img, angle, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=None):
    """`img` turned against the clock.

    Args:
        angle: in degrees.
        expand: make the result large enough to hold all of it. It is meant for turning about the middle.
        center: (x, y) from the upper left corner; the middle if None.
        fill: the color outside of the image; black if None.

    >>> cresset.vision.transforms.functional.rotate(cresset.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 90)
    tensor([[[2., 4.],
             [1., 3.]]])
    """
    kind, interpolation = _kind("rotate", img), as_mode("rotate", interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError(f"rotate: angle must be a number, got {type(angle).__name__}")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError(f"rotate: center must be (x, y), got {type(center).__name__}")
    if kind is pillow_images:
        return pillow_images.rotate(img, angle, interpolation, expand, center, fill)
    matrix = _inverse_affine(_from_middle(center, img), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    return tensor_images.rotate(img, matrix, interpolation, expand, fill)


def affine(img, angle, translate, scale, shear, interpolation=InterpolationMode.NEAREST, fill=None, center=None):
    """`img` turned with the clock, moved, scaled and sheared about its middle.

    Args:
        angle: in degrees.
        translate: (right, down) in pixels.
        scale: a positive number.
        shear: degrees, along x or (x, y).
    """
    kind, interpolation = _kind("affine", img), as_mode("affine", interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError(f"affine: angle must be a number, got {type(angle).__name__}")
    if not isinstance(translate, (list, tuple)):
        raise TypeError(f"affine: translate must be two numbers, got {type(translate).__name__}")
    if len(translate) != 2:
        raise ValueError(f"affine: translate must be two numbers, got {translate}")
    if scale <= 0.0:
        raise ValueError(f"affine: scale must be positive, got {scale}")
    if not isinstance(shear, (numbers.Number, list, tuple)):
        raise TypeError(f"affine: shear must be one or two numbers, got {type(shear).__name__}")
    shear = (
        [shear, 0.0] if isinstance(shear, numbers.Number) else [shear[0], shear[0]] if len(shear) == 1 else list(shear)
    )
    if len(shear) != 2:
        raise ValueError(f"affine: shear must be one or two numbers, got {shear}")
    if kind is pillow_images:
        center = center if center is not None else [img.width * 0.5, img.height * 0.5]
        return pillow_images.affine(img, _inverse_affine(center, angle, translate, scale, shear), interpolation, fill)
    matrix = _inverse_affine(_from_middle(center, img), angle, translate, scale, shear)
    return tensor_images.affine(img, matrix, interpolation, fill)


def _perspective_coefficients(startpoints, endpoints):
    """The eight numbers that lead from the end points back to the start points, by least squares."""
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    right = cresset.tensor(startpoints, dtype=cresset.float64).view(-1, 1)
    solution = cresset.linalg.lstsq(cresset.tensor(rows, dtype=cresset.float64), right).solution
    return solution.view(-1).to(cresset.float32).tolist()  # torchvision's precision: the same pixels


def perspective(img, startpoints, endpoints, interpolation=InterpolationMode.BILINEAR, fill=None):
    """`img` seen from elsewhere: the four corners `startpoints` go to `endpoints`, each [x, y]."""
    kind, interpolation = _kind("perspective", img), as_mode("perspective", interpolation)
    coefficients = _perspective_coefficients(startpoints, endpoints)
    return kind.perspective(img, coefficients, interpolation, fill)


# ---------------------------------------------------------------- colors


def _check_factor(who, factor):
    if factor < 0:
        raise ValueError(f"{who}: the factor must not be negative, got {factor}")


def adjust_brightness(img, brightness_factor):
    """`img` with all numbers multiplied: 0 is black, 1 is the image."""
    _check_factor("adjust_brightness", brightness_factor)
    return _kind("adjust_brightness", img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img, contrast_factor):
    """`img` drawn away from its mean gray: 0 is gray, 1 is the image."""
    _check_factor("adjust_contrast", contrast_factor)
    return _kind("adjust_contrast", img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img, saturation_factor):
    """`img` drawn away from its gray version: 0 is gray, 1 is the image."""
    _check_factor("adjust_saturation", saturation_factor)
    return _kind("adjust_saturation", img).adjust_saturation(img, saturation_factor)


def adjust_hue(img, hue_factor):
    """`img` with its colors moved around the circle of hues; -0.5 and 0.5 are the opposite colors."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: the factor must lie in [-0.5, 0.5], got {hue_factor}")
    return _kind("adjust_hue", img).adjust_hue(img, hue_factor)


def adjust_gamma(img, gamma, gain=1):
    """gain * img ** gamma, with white at 1."""
    if gamma < 0:
        raise ValueError(f"adjust_gamma: gamma must not be negative, got {gamma}")
    return _kind("adjust_gamma", img).adjust_gamma(img, gamma, gain)


def adjust_sharpness(img, sharpness_factor):
    """`img` drawn away from its blurred version: 0 is blurred, 1 is the image."""
    _check_factor("adjust_sharpness", sharpness_factor)
    return _kind("adjust_sharpness", img).adjust_sharpness(img, sharpness_factor)


def to_grayscale(img, num_output_channels=1):
    """A picture in gray, as one channel or as three equal ones. For tensors see rgb_to_grayscale."""
    if not pictures.is_picture(img):
        raise TypeError(f"to_grayscale: expected a PIL image, got {type(img).__name__}; rgb_to_grayscale takes tensors")
    return rgb_to_grayscale(img, num_output_channels)


def rgb_to_grayscale(img, num_output_channels=1):
    """`img` in gray, as one channel or as three equal ones."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"rgb_to_grayscale: num_output_channels must be 1 or 3, got {num_output_channels}")
    return _kind("rgb_to_grayscale", img).grayscale(img, num_output_channels)


def invert(img):
    """White minus `img`."""
    return _kind("invert", img).invert(img)


def posterize(img, bits):
    """`img` with the highest `bits` bits of each number."""
    if not 0 <= bits <= 8:
        raise ValueError(f"posterize: bits must lie between 0 and 8, got {bits}")
    return _kind("posterize", img).posterize(img, bits)


def solarize(img, threshold):
    """`img` with all numbers from `threshold` on inverted."""
    return _kind("solarize", img).solarize(img, threshold)


def autocontrast(img):
    """`img` with each channel stretched from black to white."""
    return _kind("autocontrast", img).autocontrast(img)


def equalize(img):
    """`img` with each channel's levels made equally frequent."""
    return _kind("equalize", img).equalize(img)


# ---------------------------------------------------------------- filters


def gaussian_blur(img, kernel_size, sigma=None):
    """`img` blurred.

    Args:
        kernel_size: odd, one number or (across, down).
        sigma: the width of the bell in pixels, one number or (across, down); it follows from the kernel's size if None.
    """
    pictures.check_image("gaussian_blur", img)
    if not isinstance(kernel_size, (int, list, tuple)):
        raise TypeError(
            f"gaussian_blur: kernel_size must be an integer or two of them, got {type(kernel_size).__name__}"
        )
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"gaussian_blur: kernel_size must be two odd and positive integers, got {kernel_size}")
    if sigma is None:
        sigma = [size * 0.15 + 0.35 for size in sizes]
    if not isinstance(sigma, (int, float, list, tuple)):
        raise TypeError(f"gaussian_blur: sigma must be a number or two of them, got {type(sigma).__name__}")
    sigmas = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else [float(value) for value in sigma]
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    if len(sigmas) != 2 or any(value <= 0 for value in sigmas):
        raise ValueError(f"gaussian_blur: sigma must be two positive numbers, got {sigma}")
    if pictures.is_picture(img):
        return to_pil_image(tensor_images.gaussian_blur(pil_to_tensor(img), sizes, sigmas), mode=img.mode)
    return tensor_images.gaussian_blur(img, sizes, sigmas)


def erase(img, i, j, h, w, v, inplace=False):
    """A tensor whose rows i to i + h and columns j to j + w are `v`."""
    if not isinstance(img, Tensor):
        raise TypeError(f"erase: expected a tensor, got {type(img).__name__}")
    img = img if inplace else img.clone()
    img[..., i : i + h, j : j + w] = v
    return img
