"""Moving between channels and places: sliding patches as columns, and back; sub-pixels; shuffled channels."""

import cresset

from ..._native import forget_base, name_node
from ...ops.columns import columns_of, places_of
from ...ops.dimensions import is_integer
from ...ops.metadata import suggested_format
from .padding import pad


def _pair(value):
    return (int(value),) * 2 if is_integer(value) else tuple(value)


def _pairs(who, **values):
    pairs = []
    for name, value in values.items():
        pair = _pair(value)
        if len(pair) != 2:
            raise RuntimeError(f"{who}: expected {name} to be one or two numbers, got {value}")
        if name == "padding" and min(pair) < 0:
            raise RuntimeError(f"{who}: padding should be non-negative, but got {value}")
        if name != "padding" and min(pair) < 1:
            raise RuntimeError(f"{who}: {name.replace('_', ' ')} should be greater than zero, but got {value}")
        pairs.append(pair)
    return pairs


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The patches that a sliding window sees, each as a column.

    Args:
        input: images (N, C, H, W) or (C, H, W).

    Returns: (N, C * kernel area, number of patches).

    >>> F.unfold(cresset.tensor([[[1.0, 2.0, 3.0]]]), (1, 2))
    tensor([[1., 2.],
            [2., 3.]])
    """
    kernel, dilation, padding, stride = _pairs(
        "unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "unfold: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            f"for input, but got: {list(input.shape)}"
        )
    places = places_of(input.shape[-2:], kernel, dilation, padding, stride)
    if min(places) < 1:
        raise RuntimeError(
            f"unfold: Given input with spatial size {tuple(input.shape[-2:])}, kernel_size={kernel}, "
            f"dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {tuple(places)}, "
            "but its components must be at least one."
        )
    padded = pad(input, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else input
    patches = columns_of(padded, kernel, dilation, (0, 0), stride)
    columns = (input.size(-3) * kernel[0] * kernel[1], places[0] * places[1])
    return name_node(forget_base(patches.reshape(*input.shape[:-3], *columns)), "Im2ColBackward0")


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Put columns back as patches of an image; where patches overlap they are summed.

    Args:
        input: columns (N, C * kernel area, number of patches), or without N.
        output_size: height and width of the image.

    >>> F.fold(cresset.tensor([[1.0, 2.0], [2.0, 3.0]]), (1, 3), (1, 2))
    tensor([[[1., 4., 3.]]])
    """
    size, kernel, dilation, padding, stride = _pairs(
        "fold", output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "fold: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
            f"for input, but got: {list(input.shape)}"
        )
    area = kernel[0] * kernel[1]
    if area >= 2**63:
        raise RuntimeError(
            f"fold: Given kernel_width = {kernel[1]} and kernel_height = {kernel[0]} the product of kernel_width and "
            "kernel_height overflowed."
        )
    if input.size(-2) % area:
        raise RuntimeError(
            "fold: Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={input.size(-2)} and kernel_size={kernel}."
        )
    places = places_of(size, kernel, dilation, padding, stride)
    given = (
        f"fold: Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
        f"stride={stride}, "
    )
    if min(places) < 1:
        raise RuntimeError(
            f"{given}calculated shape of the array of sliding blocks as {tuple(places)}, which is too small "
            "(non-positive)"
        )
    if input.size(-1) != places[0] * places[1]:
        raise RuntimeError(
            f"{given}expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{places[0]} * {places[1]} = {places[0] * places[1]}, but got input.size(2)={input.size(-1)}."
        )
    planes = input.reshape(*input.shape[:-2], input.size(-2) // area, area, input.size(-1))
    image = cresset._from_columns(planes, size, kernel, [*dilation, *stride], padding)
    return name_node(image, "Col2ImBackward0")


def _rearranged(input, mixed, *shape):
    """Memory of its own, also where nothing changes its place (single pixels, a factor of one), in the order of the
    input's.
    """
    rearranged, format = mixed.clone(memory_format=cresset.contiguous_format).view(shape), suggested_format(input)
    return forget_base(rearranged) if format is cresset.contiguous_format else rearranged.clone(memory_format=format)


def pixel_shuffle(input, upscale_factor):
    """Turn r^2 channels into one channel of r times the height and width.

    >>> F.pixel_shuffle(cresset.arange(4.0).view(1, 4, 1, 1), 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle: expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle: expects a positive upscale_factor, but got {r}")
    if r * r >= 2**63:
        raise ValueError(f"pixel_shuffle: the square of upscale_factor {r} does not fit in 64 bits")
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = input.reshape(*batch, channels // (r * r), r, r, height, width)
    n = len(batch)
    mixed = split.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    rearranged = _rearranged(input, mixed, *batch, channels // (r * r), height * r, width * r)
    return name_node(rearranged, "PixelShuffleBackward0")


def pixel_unshuffle(input, downscale_factor):
    """Turn each r by r block of places into r^2 channels; undoes `pixel_shuffle`.

    >>> F.pixel_unshuffle(cresset.arange(4.0).view(1, 1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle: expects input to have at least 3 dimensions, but got input with {input.ndim} "
            "dimension(s)"
        )
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle: expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = input.shape
    for name, size in (("height", height), ("width", width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle: expects {name} to be divisible by downscale_factor, but {name}={size} is not "
                f"divisible by {r}"
            )
    split = input.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    mixed = split.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    rearranged = _rearranged(input, mixed, *batch, channels * r * r, height // r, width // r)
    return name_node(rearranged, "PixelUnshuffleBackward0")


def channel_shuffle(input, groups):
    """Interleave `groups` groups of channels (dimension 1).

    >>> F.channel_shuffle(cresset.arange(4.0).view(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(
            f"channel_shuffle: Number of groups to divide channels in must be positive. Value of groups: {groups}"
        )
    channels = input.size(1)
    if channels % groups:
        raise RuntimeError(
            f"channel_shuffle: Number of channels must be divisible by groups. Got {channels} channels and {groups} "
            "groups."
        )
    rearranged = _rearranged(input, input.unflatten(1, (groups, channels // groups)).transpose(1, 2), *input.shape)
    return name_node(rearranged, "ChannelShuffleBackward0")


def native_channel_shuffle(input, groups):
    """The same as `channel_shuffle`."""
    return channel_shuffle(input, groups)
