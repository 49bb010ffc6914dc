"""Pillow's pictures and tensors, and the way from one to the other. The one place that asks for Pillow."""

import importlib.util
import sys
import warnings

import cresset
from cresset import Tensor

# The dtype of a mode's numbers, where it is not one byte.
_WIDE_MODES = {"I": cresset.int32, "F": cresset.float32, "I;16": cresset.uint16, "I;16L": cresset.uint16}


def pillow(who, module="Image"):
    """A module of Pillow, or an error that says how to get it."""
    if importlib.util.find_spec("PIL") is None:
        raise ImportError(
            f"{who}: pictures are handled by Pillow, which is not installed. Install it: pip install pillow"
        )
    return importlib.import_module(f"PIL.{module}")


FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "AVIF", "BMP", "PPM", "TIFF")
FREE_PIXELS, PIXELS_PER_BYTE = (
    1 << 24,
    275,
)  # deflate packs at most 1032 bytes into one; what is beyond that cannot be whole


def open_picture(who, file, size, upright=False):
    """The picture in an open file of `size` bytes, loaded, and turned as its camera noted if it should be `upright`.
    Bytes that are no picture, in whatever way, are a RuntimeError.

    Pillow knows formats that it hands to other programs, so only those that are pictures through and through are tried;
    and a picture's header can name any size, so it is compared with the bytes that are there before memory is taken for
    it.
    """
    image = pillow(who)
    limit = FREE_PIXELS + PIXELS_PER_BYTE * size
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", image.DecompressionBombWarning)  # the limit here is stricter
            picture = image.open(file, formats=FORMATS)
            if picture.width * picture.height > limit:
                raise ValueError(
                    f"{picture.width} x {picture.height} pixels, where {size} bytes can have {limit} at most"
                )
            picture.load()
            if upright:
                picture = pillow(who, "ImageOps").exif_transpose(picture)
    except Exception as error:
        raise RuntimeError(f"{who}: the bytes are not a picture that Pillow reads ({error})") from error
    return picture


def frames_of(who, file, size):
    """The pictures, with three channels, of a file that may hold several; their pixels together are limited as those
    of one.
    """
    picture, limit = open_picture(who, file, size), FREE_PIXELS + PIXELS_PER_BYTE * size
    try:
        count = getattr(picture, "n_frames", 1)
    except Exception as error:
        raise RuntimeError(f"{who}: the pictures behind the first one cannot be counted ({error})") from error
    if count * picture.width * picture.height > limit:
        raise RuntimeError(
            f"{who}: {count} pictures of {picture.width} x {picture.height} pixels, where {size} bytes can "
            f"have {limit} pixels at most"
        )
    try:
        for index in range(count):
            picture.seek(index)
            yield picture.convert("RGB")
    except Exception as error:
        raise RuntimeError(f"{who}: picture {index} of {count} cannot be read ({error})") from error


def is_picture(value):
    """Whether `value` is a picture of Pillow. Where Pillow was never imported, there is none."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def is_array(value):
    """Whether `value` is an array of NumPy."""
    module = sys.modules.get("numpy")
    return module is not None and isinstance(value, module.ndarray)


def check_image(who, value):
    """Refuse what is neither a picture nor a tensor with height and width."""
    if is_picture(value):
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"{who}: expected a PIL image or a tensor, got {type(value).__name__}")
    if value.ndim < 2:
        raise TypeError(f"{who}: an image tensor ends in height and width, got shape {tuple(value.shape)}")


def size_of(image):
    """(channels, height, width)."""
    if is_picture(image):
        return len(image.getbands()), image.height, image.width
    return (1 if image.ndim == 2 else image.shape[-3]), image.shape[-2], image.shape[-1]


def to_bytes_tensor(picture):
    """The numbers of a picture as they are, shape (channels, height, width)."""
    if picture.mode == "I;16B":
        picture = picture.convert("I")
    dtype = _WIDE_MODES.get(picture.mode, cresset.uint8)
    bands = len(picture.getbands())
    if picture.mode == "1":
        picture = picture.convert("L")
    if picture.width == 0 or picture.height == 0:
        return cresset.empty(bands, picture.height, picture.width, dtype=dtype)
    numbers = cresset.frombuffer(bytearray(picture.tobytes()), dtype=dtype)
    return numbers.view(picture.height, picture.width, bands).permute(2, 0, 1).contiguous()


def from_bytes_tensor(numbers, mode):
    """The inverse of `to_bytes_tensor`."""
    image = pillow("to_pil_image")
    channels, height, width = numbers.shape
    flat = numbers.permute(1, 2, 0).contiguous()
    if flat.numel() == 0:
        return image.new(mode, (width, height))
    return image.frombytes(mode, (width, height), bytes(memoryview(flat).cast("B")))
