"""Operators that move elements and do not compute: of the data and of the mask alike."""

import cresset

from ...ops import aten_table
from ...pytree import tree_map_only
from .core import MaskedTensor, is_masked_tensor, made_of, wrapped

_NAMES = [
    "select", "transpose", "t", "slice", "slice_backward", "select_backward", "index", "expand", "view",
    "_unsafe_view", "_reshape_alias", "cat", "unsqueeze", "unfold", "unfold_backward", "im2col", "col2im", "stack",
    "permute", "squeeze", "reshape", "flip", "roll", "index_select", "gather", "repeat",
    "diagonal", "as_strided", "narrow", "alias",
]  # fmt: skip
PASSTHROUGH_FNS = [packet for name in _NAMES if (packet := aten_table.packet(name)) is not None]
_SUMS = {"col2im", "unfold_backward"}


def moved(func, *args, **kwargs):
    """`func` of the data, with the mask that it gives of the mask."""
    name = func.overloadpacket.__name__
    if name in ("cat", "stack") and not all(map(is_masked_tensor, args[0])):
        raise TypeError(f"{name}: masked and plain tensors do not go together; as_masked_tensor says what is there")
    data = _of(func, args, kwargs, lambda masked: masked._masked_data)
    if name in _SUMS:  # elements of a mask may land on one, and bools have no sum
        return made_of(data, _of(func, args, kwargs, lambda masked: masked._masked_mask.to(cresset.float32)) != 0)
    if name == "view":  # the mask may lie otherwise than the data
        func = aten_table.packet("reshape").default
    return made_of(data, _of(func, args, kwargs, lambda masked: masked._masked_mask))


def pieces(name):
    """`split` and its like, which give several tensors, above autograd: a piece that has no gradient has zeros."""
    cut = getattr(cresset.Tensor, name)

    def moved_pieces(input, *args, **kwargs):
        data, mask = (cut(part, *args, **kwargs) for part in (input.get_data(), input.get_mask()))
        return tuple(wrapped(d, m) for d, m in zip(data, mask, strict=True))

    return moved_pieces


def _of(func, args, kwargs, part):
    args, kwargs = tree_map_only(MaskedTensor, part, (tuple(args), kwargs))
    return func(*args, **kwargs)
