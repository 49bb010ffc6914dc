"""What transforms.functional does to a picture of Pillow."""

import numbers

from ..pictures import from_bytes_tensor, pillow, to_bytes_tensor
from . import tensor_images


def _fill(fill, picture):
    """A fill for every band: Pillow wants one number, or a tuple of them."""
    bands = len(picture.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, numbers.Number):
        values = (fill,) * bands
    else:
        values = tuple(fill) * bands if len(fill) == 1 else tuple(fill)
        if len(values) != bands:
            raise ValueError(f"fill: the picture has {bands} bands, got {len(values)} values")
    if picture.mode != "F":
        values = tuple(int(value) for value in values)
    return values if bands > 1 else values[0]


def resize(picture, size, interpolation):
    return picture.resize((size[1], size[0]), interpolation.pillow)


def crop(picture, top, left, height, width):
    return picture.crop((left, top, left + width, top + height))


def horizontal_flip(picture):
    return picture.transpose(pillow("hflip").Transpose.FLIP_LEFT_RIGHT)


def vertical_flip(picture):
    return picture.transpose(pillow("vflip").Transpose.FLIP_TOP_BOTTOM)


def pad(picture, sides, fill, mode):
    left, top, right, bottom = sides
    if mode == "constant":
        image = pillow("pad")
        made = image.new(
            picture.mode, (picture.width + left + right, picture.height + top + bottom), _fill(fill, picture)
        )
        if picture.mode == "P" and picture.palette is not None:
            made.putpalette(picture.palette)
        made.paste(picture, (left, top))
        return made
    made = from_bytes_tensor(
        tensor_images.pad(to_bytes_tensor(picture), sides, 0, mode), "L" if picture.mode == "1" else picture.mode
    )
    if picture.mode == "P":
        made.putpalette(picture.getpalette())
    return made.convert("1") if picture.mode == "1" else made


def rotate(picture, angle, interpolation, expand, center, fill):
    return picture.rotate(angle, interpolation.pillow, expand, center, fillcolor=_fill(fill, picture))


def affine(picture, matrix, interpolation, fill):
    method = pillow("affine").Transform.AFFINE
    return picture.transform(picture.size, method, matrix, interpolation.pillow, fillcolor=_fill(fill, picture))


def perspective(picture, coefficients, interpolation, fill):
    method = pillow("perspective").Transform.PERSPECTIVE
    return picture.transform(picture.size, method, coefficients, interpolation.pillow, fillcolor=_fill(fill, picture))


def grayscale(picture, channels):
    gray = picture.convert("L")
    return gray if channels == 1 else pillow("to_grayscale").merge("RGB", (gray, gray, gray))


def adjust_brightness(picture, factor):
    return pillow("adjust_brightness", "ImageEnhance").Brightness(picture).enhance(factor)


def adjust_contrast(picture, factor):
    return pillow("adjust_contrast", "ImageEnhance").Contrast(picture).enhance(factor)


def adjust_saturation(picture, factor):
    return pillow("adjust_saturation", "ImageEnhance").Color(picture).enhance(factor)


def adjust_sharpness(picture, factor):
    return pillow("adjust_sharpness", "ImageEnhance").Sharpness(picture).enhance(factor)


def adjust_hue(picture, factor):
    if picture.mode in ("L", "1", "I", "F"):
        return picture
    hue, saturation, value = picture.convert("HSV").split()
    shift = int(factor * 255) % 256
    hue = hue.point([(level + shift) % 256 for level in range(256)])
    return pillow("adjust_hue").merge("HSV", (hue, saturation, value)).convert(picture.mode)


def adjust_gamma(picture, gamma, gain):
    mode = picture.mode
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)] * 3
    return picture.convert("RGB").point(table).convert(mode)


def invert(picture):
    return pillow("invert", "ImageOps").invert(picture)


def posterize(picture, bits):
    return pillow("posterize", "ImageOps").posterize(picture, bits)


def solarize(picture, threshold):
    return pillow("solarize", "ImageOps").solarize(picture, threshold)


def autocontrast(picture):
    return pillow("autocontrast", "ImageOps").autocontrast(picture)


def equalize(picture):
    return pillow("equalize", "ImageOps").equalize(picture)
