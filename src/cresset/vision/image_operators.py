"""The operators of torchvision's library of picture formats, as `torch.ops.image`: what `torch.ops.load_library` finds
in the place of that library. Pillow, which torchvision requires, reads and writes the formats.
"""

from .. import library
from . import io

__all__ = ["define"]


def _decode(input, mode, apply_exif_orientation=False):
    return io.decode_image(input, io.ImageReadMode(mode), apply_exif_orientation)


_OPERATORS = {
    "read_file(str filename) -> Tensor": io.read_file,
    "write_file(str filename, Tensor data) -> Tensor": lambda filename, data: io.write_file(filename, data) or data,
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decode,
    "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decode,
    "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decode,
    "decode_webp(Tensor data, int mode) -> Tensor": _decode,
    "decode_gif(Tensor data) -> Tensor": io.decode_gif,
    "encode_png(Tensor data, int compression_level) -> Tensor": io.encode_png,
    "encode_jpeg(Tensor data, int quality) -> Tensor": io.encode_jpeg,
}

_library = None


def define():
    """Define the operators, once."""
    global _library
    if _library is not None:
        return
    _library = library.Library("image", "FRAGMENT")
    for schema, function in _OPERATORS.items():
        _library.define(schema)
        _library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
