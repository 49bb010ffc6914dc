"""torch.distributed.checkpoint.storage: what writes and reads a checkpoint, which may be a class of one's own (for an
object store, a data base, ...). It is asked step by step, after the planner: see planner.py.
"""

import abc
import os
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """An item that is written: its size, and what the storage needs to find it again."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


CLASSES = [WriteResult]  # what travels between processes as data


class StorageWriter(abc.ABC):
    """Writes a checkpoint. Each process has one; they may say different things."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Another save begins.

        Args:
            checkpoint_id: where it goes; None: where the last one went.
        """

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Make ready.

        Args:
            is_coordinator: whether this process calls prepare_global_plan and finish.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan of this process, changed as the storage needs it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """In the first process: the plans of all."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Write the items of a plan, which the planner hands over; a Future of a WriteResult for each."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """In the first process, when all have written: make it a checkpoint.

        Args:
            metadata: what the checkpoint says of itself; what the storage needs goes into `storage_data`.
            results: of each process.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether this storage can write there."""

    def storage_meta(self) -> StorageMeta | None:
        """What the storage says of itself to the planner."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint. Each process has one."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Another load begins.

        Args:
            checkpoint_id: from where; None: from where the last one came.
        """

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint says of itself."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Make ready.

        Args:
            metadata: what read_metadata gave.
            is_coordinator: whether this process calls prepare_global_plan.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan of this process, changed as the storage needs it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """In the first process: the plans of all."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Read the items of a plan and give them to the planner: bytes to load_bytes; elements go into what
        resolve_tensor gives, then commit_tensor is told. A Future that ends when all is read.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether this storage can read there."""
