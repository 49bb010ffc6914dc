"""torch.distributed.checkpoint.planner: what a checkpoint is made of, as plans.

A plan is a list of items: what a process writes, or what it reads and where it puts it. A planner makes the plans and
hands over what is behind an item; a storage (storage.py) writes and reads it. Both may be classes of one's own.

Note [The way of a plan]
Each process makes a plan of its own; the first process sees all of them and may change them (who writes what all have);
each finishes the plan it gets back. The planner is asked at each of these steps, the storage after it.
"""

import abc
import enum
import io
import math
from dataclasses import dataclass
from typing import Any

import cresset

from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(enum.Enum):
    """What is written: a whole tensor, a part of a distributed one, or anything else as bytes."""

    TENSOR = enum.auto()
    SHARD = enum.auto()
    BYTE_IO = enum.auto()


class LoadItemType(enum.Enum):
    """What is read: elements of a tensor, or bytes."""

    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes are written, as far as that is known."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Which part of which tensor is written."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: cresset.Size


@dataclass(frozen=True)
class WriteItem:
    """Something to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self):
        """The bytes of the whole tensor; None where it is no tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Something to read: `lengths` elements by dimension, from an offset in a saved part to one in a part here."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: cresset.Size
    storage_index: MetadataIndex
    storage_offsets: cresset.Size
    lengths: cresset.Size


@dataclass(frozen=True)
class SavePlan:
    """What a process writes. `storage_data` and `planner_data` are the storage's and the planner's own; `usable` is
    PyTorch's mark of plans that are kept from one save to the next.
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


# What travels between processes as data; the data of a storage or a planner of one's own needs add_safe_globals.
CLASSES = [
    WriteItemType, LoadItemType, BytesIOWriteData, TensorWriteData, WriteItem, ReadItem, SavePlan, LoadPlan,
]  # fmt: skip


class SavePlanner(abc.ABC):
    """Plans a save (Note [The way of a plan]); most programs derive theirs from DefaultSavePlanner."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """A save begins, of this state, in this process.

        Args:
            state_dict: what is saved.
            storage_meta: what the storage says of itself.
            is_coordinator: whether this process makes the plan of all.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """In the first process: what each writes, and what the checkpoint says of itself.

        Args:
            all_plans: what each process would write.
        """

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this process writes.

        Args:
            new_plan: its share of the plan of all.
        """

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> cresset.Tensor | io.BytesIO:
        """What is behind an item. Storages may ask in several threads, and must not change what they get."""


class LoadPlanner:
    """Plans a load (Note [The way of a plan]); most programs derive theirs from DefaultLoadPlanner."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """A load begins, into this state, in this process.

        Args:
            state_dict: where what is read goes.
            metadata: what the checkpoint says of itself.
            is_coordinator: whether this process makes the plan of all.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process would read."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """In the first process: what each reads.

        Args:
            global_plan: what each process would read.
        """

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """What this process reads.

        Args:
            central_plan: its share of the plan of all.
        """

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take what was read for an item that is no tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where bytes go, for storages that fill memory they are given."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> cresset.Tensor:
        """The elements here that an item is read into: the storage writes them, then calls commit_tensor."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: cresset.Tensor) -> None:
        """What resolve_tensor gave is read."""
