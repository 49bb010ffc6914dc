"""What a checkpoint says about itself: PyTorch's classes, which its `.metadata` file holds by name."""

import enum
from dataclasses import dataclass, field
from typing import Any

import cresset


class _MEM_FORMAT_ENCODING(enum.Enum):  # noqa: N801 - the file names it
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


FORMATS = {
    cresset.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    cresset.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    cresset.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class TensorProperties:
    """How a tensor was made."""

    dtype: Any = None
    layout: Any = cresset.strided
    requires_grad: bool = False
    memory_format: Any = cresset.contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        return (self.dtype, self.layout, self.requires_grad, FORMATS[self.memory_format], self.pin_memory)

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = next(known for known, code in FORMATS.items() if code == encoded)


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A part of a tensor: where it begins and how large it is."""

    offsets: Any
    sizes: Any


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint."""

    properties: TensorProperties
    size: Any
    chunks: list


@dataclass
class BytesStorageMetadata:
    """Something else than a tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a part: of which entry, beginning where."""

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __getstate__(self):
        state = {"fqn": self.fqn, "index": self.index}
        return state if self.offset is None else {**state, "offset": self.offset}

    def __setstate__(self, state):
        for name in ("fqn", "offset", "index"):
            object.__setattr__(self, name, state.get(name))


@dataclass
class StorageMeta:
    """Where and when it was saved."""

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint: its entries, how they were nested, and in which file each part lies."""

    state_dict_metadata: dict
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: Any = None
    version: str | None = "1.0.0"


CLASSES = [
    _MEM_FORMAT_ENCODING, TensorProperties, ChunkStorageMetadata, TensorStorageMetadata, BytesStorageMetadata,
    MetadataIndex,
    StorageMeta, Metadata,
]  # fmt: skip
