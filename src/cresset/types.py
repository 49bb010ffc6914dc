"""`torch.types`: names for kinds of arguments, for annotations."""

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias, Union

from ._native import Size, Tensor, device, dtype, layout

__all__ = ["Number", "Device", "FileLike", "Storage"]

if TYPE_CHECKING:
    from .autograd.graph import GradientEdge
    from .tensors.symbolic import SymBool, SymFloat, SymInt

_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes

_Number = (int, float, bool)  # for isinstance
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Union[Tensor, Sequence[Tensor], "GradientEdge", Sequence["GradientEdge"]]
IntLikeType: TypeAlias = Union[int, "SymInt"]
FloatLikeType: TypeAlias = Union[float, "SymFloat"]
BoolLikeType: TypeAlias = Union[bool, "SymBool"]


class Storage:
    """What a storage offers, for annotations: its device, dtype and elements."""

    _cdata: int
    device: _device
    dtype: _dtype
    _torch_load_uninitialized: bool

    def __deepcopy__(self, memo: dict[int, Any]) -> "Storage":
        raise NotImplementedError("types.Storage is for annotations; UntypedStorage and TypedStorage hold memory")

    def nbytes(self) -> int:
        raise NotImplementedError("types.Storage is for annotations; UntypedStorage and TypedStorage hold memory")

    def __len__(self) -> int:
        raise NotImplementedError("types.Storage is for annotations; UntypedStorage and TypedStorage hold memory")
