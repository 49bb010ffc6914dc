"""A checkpoint in a folder: each process writes its files, then one writes `.metadata`, which makes them a checkpoint.

New files never replace those of a checkpoint that is there already. So whoever is killed at any instant leaves the old
checkpoint or the new one, and files that nobody names, which the next save takes away.
"""

import contextlib
import dataclasses
import io
import os
import pathlib
import uuid
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import cresset

from ...futures import Future
from ..surroundings import REAL
from . import pickles
from .metadata import Metadata, StorageMeta
from .parts import narrow
from .planner import LoadItemType, WriteItemType
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

METADATA = ".metadata"


@dataclass
class _StorageInfo:
    """A part of a file."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self):
        return {"relative_path": self.relative_path, "offset": self.offset, "length": self.length}

    def __setstate__(self, state):
        self.relative_path, self.offset, self.length = state["relative_path"], state["offset"], state["length"]
        self.transform_descriptors = state.get("transform_descriptors")


@dataclass
class _StoragePrefix:
    """How the names of a process's files begin."""

    prefix: str


pickles.may_name("filesystem", _StorageInfo, _StoragePrefix)


def done(value=None):
    """A Future of what is there already."""
    future = Future()
    future.set_result(value)
    return future


class FileSystemWriter(StorageWriter, BlockingAsyncStager):
    """Writes checkpoints into a folder.

    Args:
        path: the folder, which is made if it is not there.
        single_file_per_rank: one file for each process; one for each entry otherwise.
        sync_files: wait until the files are on the disk.
        thread_count, per_thread_copy_ahead, cache_staged_state_dict: how PyTorch overlaps copies with writing.
        overwrite: replace a checkpoint that is there; an error otherwise.
    """

    def __init__(
        self, path, single_file_per_rank=True, sync_files=True, thread_count=1, per_thread_copy_ahead=10_000_000,
        cache_staged_state_dict=False, overwrite=True, _disk=REAL.disk,
    ):  # fmt: skip
        super().__init__()
        self.disk = _disk
        self.path, self.sync_files, self.overwrite = pathlib.Path(path), sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank
        self.reset()

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    def reset(self, checkpoint_id=None):
        """Another save begins, perhaps in another folder."""
        if checkpoint_id is not None:
            self.path = pathlib.Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def storage_meta(self):
        """Which folder, and which save."""
        return StorageMeta(pathlib.PurePosixPath(self.path), self.save_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether it is a path below a folder that can be written to."""
        return is_path(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Make the folder."""
        self.disk.make_folder(self.path)
        if not self.overwrite and self.disk.exists(self.path / METADATA):
            raise RuntimeError(f"save: {self.path} holds a checkpoint, and overwrite is False")

    def prepare_local_plan(self, plan):
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans):
        """The files of each process begin with its number."""
        return [dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) for rank, plan in enumerate(plans)]

    def _next_number(self, prefix):
        """The first number that no file of a process has."""
        taken = {name for name in self.disk.names(self.path) if fnmatch(name, f"{prefix}*.distcp")}
        return next(n for n in range(len(taken) + 1) if f"{prefix}{n}.distcp" not in taken)

    def write_data(self, plan, planner):
        """Write the items into files that were not there before."""
        results, prefix = [], plan.storage_data.prefix
        number = self._next_number(prefix)
        groups = [plan.items] if self.single_file_per_rank else [[item] for item in plan.items]
        for group in filter(None, groups):
            name = f"{prefix}{number}.distcp"
            number += 1
            with self.disk.create(self.path / name, exclusive=True) as file:
                for item in group:
                    start, data = file.tell(), _bytes_of(item, planner)
                    file.write(data)
                    results.append(WriteResult(item.index, len(data), _StorageInfo(name, start, len(data))))
                if self.sync_files:
                    self.disk.sync(file)
        if self.sync_files and results:
            self.disk.sync_folder(self.path)
        return done(results)

    def finish(self, metadata, results):
        """Write the file that makes it a checkpoint, then take away what the one before had."""
        metadata.storage_data = {one.index: one.storage_data for process in results for one in process}
        metadata.storage_meta = self.storage_meta()
        unfinished = self.path / f"{METADATA}.tmp"
        with self.disk.create(unfinished) as file:
            file.write(pickles.write(metadata))
            self.disk.sync(file)
        self.disk.replace(unfinished, self.path / METADATA)
        self.disk.sync_folder(self.path)
        kept = {info.relative_path for info in metadata.storage_data.values()}
        for name in self.disk.names(self.path):
            if fnmatch(name, "__*_*.distcp") and name not in kept:
                with contextlib.suppress(OSError):
                    self.disk.remove(self.path / name)


def _bytes_of(item, planner):
    """What is behind an item, as a file has it."""
    data = planner.resolve_data(item)
    if item.type == WriteItemType.BYTE_IO:
        return data.getvalue()
    tensor = data.detach().cpu()
    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
        tensor = tensor.clone()  # a part of a larger tensor, whose memory would be written as a whole
    with io.BytesIO() as file:
        cresset.save(tensor, file)
        return file.getvalue()


def is_path(checkpoint_id):
    """Whether this is the name of a folder that could be made."""
    if "://" in str(checkpoint_id):
        return False
    parents = pathlib.Path(checkpoint_id).absolute().parents
    return any(os.access(parent, os.W_OK) for parent in parents if parent.exists())


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder, PyTorch's own as well.

    Args:
        path: the folder.
    """

    def __init__(self, path, _disk=REAL.disk):
        self.path, self.disk, self.storage_data = pathlib.Path(path), _disk, {}
        self.reset()

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    def reset(self, checkpoint_id=None):
        """Another load begins, perhaps from another folder."""
        self.storage_data = {}
        if checkpoint_id is not None:
            self.path = pathlib.Path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether it is a path."""
        return is_path(checkpoint_id)

    def read_metadata(self, *args, **kwargs):
        """What the checkpoint says about itself."""
        file = self.path / METADATA
        try:
            data = self.disk.read(file)
        except OSError as error:
            raise FileNotFoundError(f"load: {self.path} holds no finished checkpoint: {error}") from error
        metadata = pickles.read(data)
        if not isinstance(metadata, Metadata):
            raise RuntimeError(f"load: {file} holds a {type(metadata).__name__}, not what describes a checkpoint")
        if not isinstance(metadata.state_dict_metadata, dict) or not isinstance(metadata.storage_data, dict):
            raise RuntimeError(f"load: {file} does not say what the checkpoint has, or where it lies")
        return metadata

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Remember where everything lies."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan):
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans):
        """The plans as they are."""
        return plans

    def read_data(self, plan, planner):
        """Read the items one after the other."""
        for item in plan.items:
            info = self.storage_data.get(item.storage_index)
            if info is None:
                raise RuntimeError(f"load: {METADATA} does not say where {item.storage_index} lies")
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(self.read_bytes(info)))
                continue
            part = self.read_tensor(info)
            if not isinstance(part, cresset.Tensor):
                raise RuntimeError(f"load: {info.relative_path} holds a {type(part).__name__} for {item.storage_index}")
            part, place = narrow(part, item.storage_offsets, item.lengths), planner.resolve_tensor(item).detach()
            if part.shape != place.shape:
                raise RuntimeError(
                    f"load: {item.storage_index.fqn}: what was read has shape {tuple(part.shape)}, its place here "
                    f"{tuple(place.shape)}"
                )
            with cresset.no_grad():
                place.copy_(part)
            planner.commit_tensor(item, place)
        return done()

    def read_bytes(self, info):
        """A part of a file."""
        if info.transform_descriptors:
            raise NotImplementedError(f"load: {info.relative_path} is compressed, which is not supported")
        file = (self.path / info.relative_path).resolve()
        if file.parent != self.path.resolve():
            raise RuntimeError(f"load: {METADATA} names a file outside of its folder: {info.relative_path!r}")
        data = self.disk.read(file, info.offset, info.length)
        if len(data) != info.length:
            raise RuntimeError(f"load: {file.name} ends before byte {info.offset + info.length}")
        return data

    def read_tensor(self, info):
        """What was saved there."""
        return cresset.load(io.BytesIO(self.read_bytes(info)), weights_only=True)
