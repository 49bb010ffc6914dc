"""The numbers of tensors in an event file: tensors as they are, meshes, and the layout of charts."""

import json
import struct

import cresset

from ..protobuf import doubles, integer, message, singles, varint
from .encoding import as_tensor, entry, metadata, shape


def half_to_int(f):
    """The bits of a number as float32, which is how half precision is kept in the field for it."""
    return struct.unpack("<i", struct.pack("<f", f))[0]


def int_to_half(i):
    """The number that half_to_int was given.

    >>> cresset.utils.tensorboard.summary.int_to_half(cresset.utils.tensorboard.summary.half_to_int(1.5))
    1.5
    """
    return struct.unpack("<f", struct.pack("<i", i))[0]


def _integers(number, values):
    return message(number, b"".join(varint(int(v)) for v in values))


def _halves(number, values):
    return _integers(number, [half_to_int(v) for v in values])


_FIELDS = {  # dtype: its number in TensorFlow, the field of the numbers, how they are written
    cresset.float16: (19, 13, _halves), cresset.bfloat16: (14, 13, _halves), cresset.float32: (1, 5, singles),
    cresset.float64: (2, 6, doubles), cresset.int8: (6, 7, _integers), cresset.uint8: (4, 16, _integers),
    cresset.int16: (5, 7, _integers), cresset.int32: (3, 7, _integers), cresset.int64: (9, 10, _integers),
    cresset.bool: (10, 11, _integers), cresset.complex64: (8, 9, singles), cresset.complex128: (18, 12, doubles),
}  # fmt: skip


def tensor_proto(tag, tensor):
    """The numbers of a tensor, in its dtype."""
    tensor = as_tensor(tensor)
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field, write = _FIELDS[tensor.dtype]
    numbers = cresset.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    sizes = shape(*(tensor.shape or (1,)))
    encoded = message(8, integer(1, kind), sizes, write(field, numbers.flatten().tolist()))
    return entry(tag, encoded, metadata("tensor"))


def mesh(tag, vertices, colors, faces, config_dict, display_name=None, description=None):
    """Points in space, the triangles between them (rows of three indices) and their colors."""
    parts = [("VERTEX", 1, vertices), ("FACE", 2, faces), ("COLOR", 3, colors)]
    parts = [part for part in parts if part[2] is not None]
    components = sum(1 << number for _, number, _ in parts)
    config = json.dumps(config_dict or {}, sort_keys=True)
    encoded = []
    for word, number, rows in parts:
        rows = as_tensor(rows).to(cresset.float32)
        content = (
            message(2, tag), integer(3, number), message(5, config), _integers(6, rows.shape), integer(7, components),
        )  # fmt: skip
        tensor = message(8, integer(1, 1), shape(*rows.shape), singles(5, rows.flatten().tolist()))
        said = metadata("mesh", b"".join(content), display_name, description)
        encoded.append(entry(f"{tag}_{word}", tensor, said))
    return b"".join(encoded)


def custom_scalars(layout):
    """Which scalars share a chart: {category: {chart: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}."""
    categories = []
    for category, charts in layout.items():
        described = [message(2, _chart(title, kind, tags)) for title, (kind, tags) in charts.items()]
        categories.append(message(2, message(1, category), *described))
    tensor = message(8, integer(1, 7), shape(), message(8, *categories))
    return entry("custom_scalars__config__", tensor, metadata("custom_scalars"))


def _chart(title, kind, tags):
    if kind == "Margin":
        if len(tags) != 3:
            raise AssertionError(f"custom_scalars: a margin chart has three tags, {title!r} has {len(tags)}")
        content = message(3, message(1, *(message(number, tag) for number, tag in enumerate(tags, 1))))
    else:
        content = message(2, *(message(1, tag) for tag in tags))
    return message(1, title) + content
