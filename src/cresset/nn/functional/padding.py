"""Padding: by a constant, by reflection, by repeating the border, or around in a circle."""

import cresset

from ..._native import name_node, overridable
from ...ops.autocast import apply, autocast
from ...ops.dimensions import integers
from ...ops.padding import CIRCULAR, CONSTANT, REFLECT, REPLICATE


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
    pad = integers("pad", "pad", pad)
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
        raise NotImplementedError(
            f"pad: Padding size {len(pad)} is not supported for {ndim}D input tensor: mode {mode!r} pads the last one, "
            "two or three dimensions, behind one dimension or two"
        )
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


def _constant(input, amounts, value):
    for dim, before, after in amounts:
        _check_result(input, dim, before, after)
        if input.size(dim) + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"pad: The input size {input.size(dim)} of dimension {dim} is less than what negative padding {before} "
                f"and {after} takes away"
            )
    if any(amount > 0 for _, *both in amounts for amount in both):
        return cresset._pad(input, _in_pairs(amounts), CONSTANT, value, False)
    for dim, before, after in amounts:
        input = input.narrow(dim, -before, input.size(dim) + before + after)
    return name_node(input.clone(), "ConstantPadNdBackward0")


def _in_pairs(amounts):
    return [amount for _, *both in amounts for amount in both]


def _check_reflect(input, dim, before, after):
    length = input.size(dim)
    if before >= length or after >= length:
        raise RuntimeError(
            "pad: Argument #4: Padding size should be less than the corresponding input dimension, "
            f"but got: padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )


def _check_replicate(input, dim, _before, _after):
    if input.size(dim) == 0:
        raise RuntimeError(
            f"pad: Expected non-empty dimension {dim} to replicate, got input of shape {list(input.shape)}"
        )


def _check_circular(input, dim, before, after):
    length = input.size(dim)
    if before > length or after > length:
        raise RuntimeError(
            f"pad: Padding value causes wrapping around more than once; padding ({before}, {after}) at dimension {dim} "
            f"of input {list(input.shape)}"
        )


def _check_empty(input, spatial):
    """Of nothing there is nothing to take; only the batch may be empty."""
    if 0 in (input.shape[1:] if input.ndim == spatial + 2 else input.shape):
        raise RuntimeError(
            f"pad: Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )


def _taken(mode, check):
    """Padding with elements of the input."""

    def padded(input, amounts):
        if mode != CIRCULAR:
            _check_empty(input, len(amounts))
        for dim, before, after in amounts:
            if before or after:
                check(input, dim, before, after)
                _check_result(input, dim, before, after)
        if not any(before or after for _, before, after in amounts):
            return input.clone()
        return cresset._pad(input, _in_pairs(amounts), mode, 0, False)

    return padded


_MODES = {"reflect": "reflection_pad", "replicate": "replication_pad", "circular": "circular_pad"}
_BY_NAME = {
    "reflection_pad": autocast(cpu="float32")(_taken(REFLECT, _check_reflect)),
    "replication_pad": autocast(cpu="float32")(_taken(REPLICATE, _check_replicate)),
    "circular_pad": _taken(CIRCULAR, _check_circular),
}
apply(_BY_NAME)
