"""torchvision.io, for pictures: files and bytes to tensors (channels, height, width) of bytes, and back, by Pillow."""

import io as _io
from enum import Enum

import cresset
from cresset import Tensor

from .pictures import frames_of, from_bytes_tensor, open_picture, to_bytes_tensor

__all__ = [
    "ImageReadMode", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_webp", "encode_jpeg",
    "encode_png",
    "read_file", "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip


class ImageReadMode(Enum):
    """The channels that a picture is read to."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def read_file(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        data = file.read()
    return cresset.frombuffer(bytearray(data), dtype=cresset.uint8) if data else cresset.empty(0, dtype=cresset.uint8)


def write_file(filename, data):
    """Bytes into a file."""
    if data.dtype != cresset.uint8 or data.ndim != 1:
        raise RuntimeError(f"write_file: expected a 1-D uint8 tensor, got {data.dtype} of shape {tuple(data.shape)}")
    with open(filename, "wb") as file:
        file.write(bytes(memoryview(data.contiguous())))


def decode_image(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """The picture in bytes (a 1-D uint8 tensor), or in the file of a path, as a tensor.

    Args:
        mode: the channels to have, an ImageReadMode or its name.
        apply_exif_orientation: turn it as its camera noted.
    """
    if not isinstance(input, Tensor):
        input = read_file(input)
    mode = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    picture = open_picture("decode_image", _stream("decode_image", input), input.numel(), apply_exif_orientation)
    if picture.format == "GIF":
        return decode_gif(input)
    if mode != ImageReadMode.UNCHANGED:
        picture = picture.convert(_MODES[mode.name])
    elif picture.mode in ("P", "1"):
        picture = picture.convert("RGB" if picture.mode == "P" else "L")
    return to_bytes_tensor(picture)


decode_png = decode_jpeg = decode_image


def decode_webp(input, mode=ImageReadMode.UNCHANGED):
    """The picture in the bytes of a WebP file."""
    return decode_image(input, mode)


def decode_gif(input):
    """The pictures in the bytes of a GIF file, with three channels: (3, height, width), with a dimension for them in
    front if there are several.
    """
    frames = [to_bytes_tensor(frame) for frame in frames_of("decode_gif", _stream("decode_gif", input), input.numel())]
    return frames[0] if len(frames) == 1 else cresset.stack(frames)


def _stream(who, input):
    """A tensor of bytes as an open file."""
    if input.dtype != cresset.uint8 or input.ndim != 1 or input.numel() == 0:
        raise RuntimeError(
            f"{who}: expected a 1-D uint8 tensor that is not empty, got {input.dtype} of shape {tuple(input.shape)}"
        )
    return _io.BytesIO(bytes(memoryview(input.contiguous())))


def read_image(path, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False):
    """The picture in a file as a tensor (channels, height, width)."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def _encoded(who, input, format, **options):
    if not isinstance(input, Tensor) or input.dtype != cresset.uint8 or input.ndim != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"{who}: expected a uint8 tensor of shape (1 or 3, height, width)")
    stream = _io.BytesIO()
    from_bytes_tensor(input.cpu(), "L" if input.shape[0] == 1 else "RGB").save(stream, format=format, **options)
    return cresset.frombuffer(bytearray(stream.getvalue()), dtype=cresset.uint8)


def encode_png(input, compression_level=6):
    """The bytes of a PNG file."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"encode_png: compression_level lies between 0 and 9, got {compression_level}")
    return _encoded("encode_png", input, "PNG", compress_level=compression_level)


def encode_jpeg(input, quality=75):
    """The bytes of a JPEG file."""
    if not 1 <= quality <= 100:
        raise ValueError(f"encode_jpeg: quality lies between 1 and 100, got {quality}")
    return _encoded("encode_jpeg", input, "JPEG", quality=quality)


def write_png(input, filename, compression_level=6):
    """An image into a PNG file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input, filename, quality=75):
    """An image into a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))
