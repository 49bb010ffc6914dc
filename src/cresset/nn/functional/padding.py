"""Padding: by a constant, by reflection, by repeating the border, or around in a circle."""

import cresset

from ..._native import overridable
from ...ops.autocast import apply, autocast


def pad(input, pad, mode="constant", value=None):
    """Add elements at the ends of the last dimensions; negative amounts take away.

    Args:
        pad: (before, after) for the last dimension, then for the one before it, and so on.
        mode: "constant" (with `value`, 0 by default), "reflect", "replicate" or "circular".

    >>> F.pad(cresset.tensor([1, 2, 3]), (1, 2))
    tensor([0, 1, 2, 3, 0, 0])
    >>> F.pad(cresset.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
    tensor([[3., 2., 1., 2., 3.]])
    """
    pad = [int(amount) for amount in pad]
    ndim = input.ndim
    if len(pad) % 2:
        raise RuntimeError(f"pad: Padding length must be divisible by 2, got {pad}")
    if len(pad) // 2 > ndim:
        raise RuntimeError(
            f"pad: Padding length should be less than or equal to two times the input dimension "
            f"but got padding length {len(pad)} and input of dimension {ndim}"
        )
    amounts = [(ndim - 1 - k, pad[2 * k], pad[2 * k + 1]) for k in range(len(pad) // 2)]
    if mode == "constant":
        return _constant(input, amounts, 0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(amounts) not in (1, 2, 3) or ndim - len(amounts) not in (1, 2):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    return _BY_NAME[_MODES[mode]](input, amounts)


pad = overridable(pad, "torch.nn.functional")  # also where other files of this package call it


def _check_result(input, dim, before, after):
    size = input.size(dim) + before + after
    if size < 0:
        raise RuntimeError(
            f"pad: The input size {input.size(dim)}, plus negative padding {before} and {after} resulted in a negative "
            f"output size, which is invalid. Check dimension {dim} of your input."
        )
    if size > 2**63 - 1:
        raise RuntimeError(
            f"pad: integer overflow: the size {input.size(dim)} + {before} + {after} of dimension {dim} does not fit "
            "in 64 bits"
        )
    return size


def _channels_last(input):
    """The memory format in which the channels of images or volumes lie last, where they do; else None."""
    ndim = input.ndim
    if ndim not in (4, 5) or 0 in input.shape or input.stride(1) == 0:
        return None
    strides, least = input.stride(), 0
    for dim in (1, *range(ndim - 1, 1, -1), 0):
        # An order that both formats fit (one channel, one pixel) is no reason to say that channels lie last.
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return None
        least = strides[dim] * input.size(dim)
    return cresset.channels_last if ndim == 4 else cresset.channels_last_3d


def _constant(input, amounts, value):
    for dim, before, after in amounts:
        _check_result(input, dim, before, after)
    changed, format = False, _channels_last(input)
    for dim, before, after in amounts:
        if before < 0 or after < 0:
            start = max(-before, 0)
            input = input.narrow(dim, start, input.size(dim) - start - max(-after, 0))
        shape, filler = list(input.shape), input.new_full((), value)

        def block(amount, shape=shape, dim=dim, filler=filler):
            if amount <= 0:
                return []
            filled = filler.expand(shape[:dim] + [amount] + shape[dim + 1 :])
            return [filled if format is None else filled.contiguous(memory_format=format)]

        pieces = block(before) + [input] + block(after)
        if len(pieces) > 1:
            input, changed = cresset.cat(pieces, dim), True
    return input if changed else input.clone()


def _positions(input, dim, before, after):
    size = _check_result(input, dim, before, after)
    return cresset.arange(-before, size - before, device=input.device)


def _reflect(input, dim, before, after):
    length = input.size(dim)
    if before >= length or after >= length:
        raise RuntimeError(
            "pad: Argument #4: Padding size should be less than the corresponding input dimension, "
            f"but got: padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )
    # |i| reflects at the front, last - |last - i| at the back.
    return length - 1 - (length - 1 - _positions(input, dim, before, after).abs()).abs()


def _replicate(input, dim, before, after):
    if input.size(dim) == 0:
        raise RuntimeError(
            f"pad: Expected non-empty dimension {dim} to replicate, got input of shape {list(input.shape)}"
        )
    return _positions(input, dim, before, after).clamp(0, input.size(dim) - 1)


def _circular(input, dim, before, after):
    length = input.size(dim)
    if before > length or after > length:
        raise RuntimeError(
            f"pad: Padding value causes wrapping around more than once; padding ({before}, {after}) at dimension {dim} "
            f"of input {list(input.shape)}"
        )
    # What negative amounts take away is gone before the rest is joined to a circle.
    first, kept = max(-before, 0), length - max(-before, 0) - max(-after, 0)
    return first + cresset.arange(-max(before, 0), kept + max(after, 0), device=input.device) % kept


def _check_empty(input, spatial):
    """Of nothing there is nothing to take; only the batch may be empty."""
    if 0 in (input.shape[1:] if input.ndim == spatial + 2 else input.shape):
        raise RuntimeError(
            f"pad: Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )


def _taken_from(source, keeps_format=True):
    """Padding with elements of the input, whose positions along a dimension `source` says."""

    def padded(input, amounts):
        _check_empty(input, len(amounts))
        last = keeps_format and _channels_last(input) is not None
        for dim, before, after in amounts:
            if before or after:
                places = source(input, dim, before, after)
                if last:  # taken from the form in which channels do lie last, which is contiguous then
                    input = input.movedim(1, -1).index_select(dim - 1, places).movedim(-1, 1)
                else:
                    input = input.index_select(dim, places)
        return input if any(before or after for _, before, after in amounts) else input.clone()

    return padded


_MODES = {"reflect": "reflection_pad", "replicate": "replication_pad", "circular": "circular_pad"}
_BY_NAME = {
    "reflection_pad": autocast(cpu="float32")(_taken_from(_reflect)),
    "replication_pad": autocast(cpu="float32")(_taken_from(_replicate)),
    "circular_pad": _taken_from(_circular, keeps_format=False),
}
apply(_BY_NAME)
