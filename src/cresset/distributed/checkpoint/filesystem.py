"""A checkpoint in a folder: each process writes its files, then one writes `.metadata`, which makes them a checkpoint.

New files never replace those of a checkpoint that is there already. So whoever is killed at any instant leaves the old
checkpoint or the new one, and files that nobody names, which the next save takes away.
"""

import contextlib
import io
import pathlib
import pickle
import uuid
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import cresset

from ...serialization.loading import Load
from ...serialization.names import safe_globals
from ...serialization.saving import Pickler
from ..surroundings import REAL
from .metadata import (
    CLASSES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .parts import Part, part_of

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


# What `.metadata` may name, under PyTorch's names.
NAMED = [
    *((kind, f"torch.distributed.checkpoint.metadata.{kind.__name__}") for kind in CLASSES),
    (_StorageInfo, "torch.distributed.checkpoint.filesystem._StorageInfo"),
    (pathlib.PurePosixPath, "pathlib.PosixPath"),
    (pathlib.PurePosixPath, "pathlib.PurePosixPath"),
]


class FileSystemWriter:
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
        self.disk = _disk
        self.path, self.sync_files, self.overwrite = pathlib.Path(path), sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank

    def begin(self):
        """Make the folder ready; the numbers that files of an earlier checkpoint have."""
        self.disk.make_folder(self.path)
        if not self.overwrite and self.disk.exists(self.path / METADATA):
            raise RuntimeError(f"save: {self.path} holds a checkpoint, and overwrite is False")

    def next_number(self, rank):
        """The first number that no file of a rank has."""
        taken = {name for name in self.disk.names(self.path) if fnmatch(name, f"__{rank}_*.distcp")}
        return next(n for n in range(len(taken) + 1) if f"__{rank}_{n}.distcp" not in taken)

    def write(self, rank, entries):
        """Write entries [(name, value)]; ([what lies where], {name: its metadata})."""
        places, described, number = [], {}, self.next_number(rank)
        groups = [entries] if self.single_file_per_rank else [[entry] for entry in entries]
        for group in filter(None, groups):
            name = f"__{rank}_{number}.distcp"
            number += 1
            with self.disk.create(self.path / name, exclusive=True) as file:
                for key, value in group:
                    start = file.tell()
                    index, described[key] = _describe(key, value)
                    with io.BytesIO() as one:
                        given = value.local if isinstance(value, Part) else value
                        cresset.save(given.detach().cpu() if isinstance(given, cresset.Tensor) else given, one)
                        file.write(one.getvalue())
                    places.append((index, _StorageInfo(name, start, file.tell() - start)))
                if self.sync_files:
                    self.disk.sync(file)
        if self.sync_files and places:
            self.disk.sync_folder(self.path)
        return places, described

    def finish(self, metadata):
        """Write the file that makes it a checkpoint, then take away what the one before had."""
        metadata.storage_meta = StorageMeta(pathlib.PurePosixPath(self.path), str(uuid.uuid4()))
        text = io.BytesIO()
        Pickler(text, 4, lambda _: None).dump(metadata)
        unfinished = self.path / f"{METADATA}.tmp"
        with self.disk.create(unfinished) as file:
            file.write(text.getvalue())
            self.disk.sync(file)
        self.disk.replace(unfinished, self.path / METADATA)
        self.disk.sync_folder(self.path)
        kept = {info.relative_path for info in metadata.storage_data.values()}
        for name in self.disk.names(self.path):
            if fnmatch(name, "__*_*.distcp") and name not in kept:
                with contextlib.suppress(OSError):
                    self.disk.remove(self.path / name)


def _describe(key, value):
    if isinstance(value, cresset.Tensor):
        value = part_of(value)
    if not isinstance(value, Part):
        return MetadataIndex(key), BytesStorageMetadata()
    offset, local = cresset.Size(value.offset), value.local
    properties = TensorProperties(local.dtype, local.layout, local.requires_grad)
    piece = ChunkStorageMetadata(offset, local.shape)
    return MetadataIndex(key, offset, 0), TensorStorageMetadata(properties, cresset.Size(value.shape), [piece])


class MetadataLoad(Load):
    """Reads `.metadata`: a pickle without storages, of the classes in metadata.py and plain data."""

    def __init__(self, data):
        with safe_globals(NAMED):
            super().__init__({"restore": None, "encoding": "utf-8", "trusting": False}, len(data))
        self.data = data

    def persistent(self, saved_id):
        raise pickle.UnpicklingError("a storage, which `.metadata` has none of")

    def read(self):
        return self.reader(self.data).read()


class FileSystemReader:
    """Reads checkpoints from a folder, PyTorch's own as well.

    Args:
        path: the folder.
    """

    def __init__(self, path, _disk=REAL.disk):
        self.path, self.disk = pathlib.Path(path), _disk

    def read_metadata(self):
        """What the checkpoint says about itself."""
        file = self.path / METADATA
        try:
            data = self.disk.read(file)
        except OSError as error:
            raise FileNotFoundError(f"load: {self.path} holds no finished checkpoint: {error}") from error
        metadata = MetadataLoad(data).read()
        if not isinstance(metadata, Metadata):
            raise RuntimeError(f"load: {file} holds a {type(metadata).__name__}, not what describes a checkpoint")
        return metadata

    def read(self, info):
        """A part: what was saved there."""
        if info.transform_descriptors:
            raise NotImplementedError(f"load: {info.relative_path} is compressed, which is not supported")
        file = (self.path / info.relative_path).resolve()
        if file.parent != self.path.resolve():
            raise RuntimeError(f"load: {METADATA} names a file outside of its folder: {info.relative_path!r}")
        data = self.disk.read(file, info.offset, info.length)
        if len(data) != info.length:
            raise RuntimeError(f"load: {file.name} ends before byte {info.offset + info.length}")
        return cresset.load(io.BytesIO(data), weights_only=True)
