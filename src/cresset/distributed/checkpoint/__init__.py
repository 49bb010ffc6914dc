"""torch.distributed.checkpoint: state that several processes save together and any number of them loads.

The files are PyTorch's: a folder with `.metadata` and `*.distcp`. They are read as data only.
"""

import concurrent.futures
import enum
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import cresset

from ...show import missing_names as _missing_names
from .. import collectives, objects, world
from ..tensor.dtensor import DTensor
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter, _StorageInfo
from .flattening import flatten, grow, put
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter, _HFStorageInfo
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .parts import fill, part_of, written_here
from .quantized_hf_storage import QuantizedHuggingFaceStorageReader

__all__ = [
    "AsyncCheckpointerType", "AsyncSaveResponse", "BytesStorageMetadata", "CheckpointException",
    "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "Metadata", "MetadataIndex",
    "QuantizedHuggingFaceStorageReader", "TensorProperties", "TensorStorageMetadata", "async_save", "load",
    "load_sharded_optimizer_state_dict", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip


class CheckpointException(BaseException):
    """Some processes could not do their part; `failures` has the error of each, by rank."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self.failures = failures

    def __str__(self):
        lines = [f"{type(self).__name__} ranks:{set(self.failures)}"]
        return "\n".join([*lines, *(f"rank {rank}: {error}" for rank, error in sorted(self.failures.items()))])


class _Alone:
    """The processes that save together when there is one."""

    rank, size = 0, 1

    def gather(self, value):
        return [value]

    def barrier(self):
        pass


class _Together:
    """The processes of a group."""

    def __init__(self, group):
        self.group = group
        self.rank, self.size = group.rank(), group.size()

    def gather(self, value):
        every = [None] * self.size
        objects.all_gather_object(every, value, self.group)
        return every

    def barrier(self):
        collectives.barrier(self.group)


def _processes(process_group, no_dist):
    if no_dist or not world.is_initialized():
        return _Alone()
    return _Together(world.member_of(process_group, "checkpoint"))


def _settings(who, planner, *kinds):
    """The planner, which is one of these and no class of the program's own; the first of them by default."""
    if planner is None:
        return kinds[0]()
    if type(planner) not in kinds:
        raise NotImplementedError(
            f"{who}: planners of one's own are not in cresset; `planner` may be a {kinds[0].__name__}, not a "
            f"{type(planner).__name__}"
        )
    return planner


def _all_well(processes, error, what):
    """Let all processes fail when one of them has."""
    words = processes.gather(None if error is None else f"{type(error).__name__}: {error}")
    failures = {rank: text for rank, text in enumerate(words) if text is not None}
    if failures:
        if processes.size == 1:
            raise error
        raise CheckpointException(what, failures) from error


def _mine(flat, processes, first_writes=False):
    """The entries that this process writes: its parts of distributed tensors; what all have is divided among them by
    size, or written by the first that has it.
    """
    parts = {k: v for k, v in flat.items() if isinstance(v, DTensor)}
    flat = {k: v for k, v in flat.items() if k not in parts}
    sizes = {k: v.numel() * v.element_size() if isinstance(v, cresset.Tensor) else 0 for k, v in flat.items()}
    every = processes.gather(sizes)
    owners, load = {}, [0] * processes.size
    for key in sorted({k for one in every for k in one}, key=lambda k: (-max(one.get(k, 0) for one in every), k)):
        holders = [rank for rank, one in enumerate(every) if key in one]
        divides = every[holders[0]][key] and not first_writes
        rank = min(holders, key=lambda r: (load[r], r)) if divides else holders[0]
        owners[key] = rank
        load[rank] += every[rank][key]
    mine = [(key, value) for key, value in flat.items() if owners[key] == processes.rank]
    return mine + [(key, part_of(value)) for key, value in parts.items() if written_here(value)]


def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    use_collectives=True,
):
    """Save nested state. All processes of the group call this; what all have is written once.

    Args:
        state_dict: dictionaries and lists of tensors and other data.
        checkpoint_id: the folder.
        storage_writer: a FileSystemWriter, in place of the folder.
        planner: a DefaultSavePlanner; others are refused.
        process_group: by default all processes.
        no_dist: this process alone.
        use_collectives: PyTorch's way to write one `.metadata` for each process when it is False; there is always one
            here.

    Returns: the Metadata.
    """
    first_writes = _settings("save", planner, DefaultSavePlanner).dedup_save_to_lowest_rank
    writer = _storage(storage_writer, checkpoint_id, FileSystemWriter, "save")
    return _commit(state_dict, writer, _processes(process_group, no_dist), first_writes)


def _commit(state_dict, writer, processes, first_writes=False):
    """All write their parts; when all are on the disk, one makes them the checkpoint."""
    flat, paths = flatten(_states(state_dict))
    entries, error, written = _mine(flat, processes, first_writes), None, ([], {})
    try:
        writer.begin()
        written = writer.write(processes.rank, entries)
    except Exception as problem:
        error = problem
    _all_well(processes, error, "save")
    places, described = written
    rows = [(i.fqn, i.offset, i.index, s.relative_path, s.offset, s.length) for i, s in places]
    packed = processes.gather(rows)
    kinds = processes.gather({k: _packed(m) for k, m in described.items()})
    all_paths = processes.gather({k: list(p) for k, p in paths.items()})
    metadata = _joined(packed, kinds, all_paths, isinstance(writer, HuggingFaceStorageWriter))
    error = None
    if processes.rank == 0:
        try:
            writer.finish(metadata)
        except Exception as problem:
            error = problem
    _all_well(processes, error, "save")
    return metadata


def _packed(described):
    """Metadata as plain data, which travels."""
    if isinstance(described, BytesStorageMetadata):
        return None
    p = described.properties
    pieces = [(list(piece.offsets), list(piece.sizes)) for piece in described.chunks]
    return (p.dtype, p.requires_grad, list(described.size), pieces)


def _joined(packed, kinds, all_paths, by_name):
    described = {}
    pieces: dict = {}
    for one in kinds:
        for key, kind in one.items():
            if kind is None:
                described[key] = BytesStorageMetadata()
                continue
            pieces.setdefault(key, []).extend(kind[3])
            about = TensorProperties(kind[0], requires_grad=kind[1])
            described[key] = TensorStorageMetadata(about, cresset.Size(kind[2]), [])
    for key, found in pieces.items():
        found.sort()
        described[key].chunks = [ChunkStorageMetadata(cresset.Size(o), cresset.Size(n)) for o, n in found]
    places = {key: {tuple(o): number for number, (o, _) in enumerate(found)} for key, found in pieces.items()}
    storage = {}
    for name, offset, index, path, start, length in (row for one in packed for row in one):
        number = index if offset is None else places[name][tuple(offset)]
        place = _HFStorageInfo(path, name, length) if by_name else _StorageInfo(path, start, length)
        storage[MetadataIndex(name, offset, number)] = place
    paths = {key: tuple(path) for one in all_paths for key, path in one.items()}
    return Metadata(described, {key: paths[key] for key in described}, storage)


def _storage(given, checkpoint_id, kind, who):
    if given is not None:
        if not isinstance(given, kind):
            raise TypeError(f"{who}: storage must be a {kind.__name__}, not {type(given).__name__}")
        return given
    if checkpoint_id is None:
        raise RuntimeError(f"{who}: `checkpoint_id` must be specified if storage is None.")
    return kind(checkpoint_id)


def _states(state_dict):
    """The state of entries that know theirs: modules, optimizers."""
    return {
        k: v.state_dict() if hasattr(v, "state_dict") and hasattr(v, "load_state_dict") else v
        for k, v in state_dict.items()
    }


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Load what `save` has written into the tensors of `state_dict`; other entries are replaced.

    Args:
        state_dict: nested, with the entries to load; others of the checkpoint are left alone.
        checkpoint_id: the folder.
        storage_reader: a FileSystemReader, in place of the folder.
        planner: a DefaultLoadPlanner, which may allow entries that the checkpoint lacks; others are refused.
        process_group: by default all processes.
        no_dist: this process alone.
    """
    settings = _settings("load", planner, DefaultLoadPlanner, _EmptyStateDictLoadPlanner)
    reader = _storage(storage_reader, checkpoint_id, FileSystemReader, "load")
    processes, error = _processes(process_group, no_dist), None
    try:
        if isinstance(settings, _EmptyStateDictLoadPlanner):
            state_dict.update(_room_for(reader.read_metadata(), settings.takes))
        _load(state_dict, reader, settings.allow_partial_load)
    except Exception as problem:
        error = problem
    _all_well(processes, error, "load")


def _room_for(metadata, takes):
    """Nested state with room for the entries of a checkpoint whose path is taken."""
    made: dict = {}
    for name, described in metadata.state_dict_metadata.items():
        path = tuple((metadata.planner_data or {}).get(name, (name,)))
        if takes(path):
            is_tensor = isinstance(described, TensorStorageMetadata)
            value = cresset.empty(described.size, dtype=described.properties.dtype) if is_tensor else None
            grow(made, path, value)
    return made


def _load(state_dict, reader, partially=False):
    metadata = reader.read_metadata()
    states = _states(state_dict)
    flat, paths = flatten(states)
    missing = [key for key in flat if key not in metadata.state_dict_metadata]
    flat = {key: value for key, value in flat.items() if key not in missing} if partially else flat
    if missing and not partially:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    parts = {}
    for index, info in metadata.storage_data.items():
        parts.setdefault(index.fqn, []).append((index, info))
    for key, value in flat.items():
        described = metadata.state_dict_metadata[key]
        if isinstance(described, TensorStorageMetadata) != isinstance(value, cresset.Tensor):
            raise ValueError(
                f"load: {key} is {'a tensor' if isinstance(value, cresset.Tensor) else 'no tensor'}, unlike in the "
                "checkpoint"
            )
        if isinstance(value, cresset.Tensor):
            _fill(key, value, described, parts.get(key, []), reader)
        else:
            put(states, paths[key], reader.read(parts[key][0][1]))
    for key, value in list(state_dict.items()):
        if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _fill(key, tensor, described, parts, reader):
    """Put the parts of a tensor in their places."""
    if tuple(described.size) != tuple(tensor.shape):
        raise ValueError(
            f"Size mismatch between saved {tuple(described.size)} and current: {tuple(tensor.shape)} for {key}"
        )
    part = part_of(tensor)
    sizes = {tuple(piece.offsets): piece.sizes for piece in described.chunks}
    origin = (0,) * tensor.dim()
    pieces = [(tuple(i.offset or origin), sizes[tuple(i.offset or origin)], info) for i, info in parts]
    with cresset.no_grad():
        filled = fill(part, pieces, reader.read)
    if filled < part.local.numel():
        raise RuntimeError(f"load: parts of {key} are missing: {filled} of {part.local.numel()} elements are there")


class AsyncCheckpointerType(enum.Enum):
    """Where async_save writes: in a thread. Another process is PyTorch's, and refused."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save gives when a stager copies in the background: Futures of the copy and of the checkpoint."""

    staging_completion: Any
    upload_completion: Any


_groups = weakref.WeakKeyDictionary()  # the group of all -> that of saves in the background
_latest = weakref.WeakKeyDictionary()  # a group -> the Future of the latest save in it


def async_save(
    state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None,
    async_checkpointer_type=AsyncCheckpointerType.THREAD, async_stager=None, no_dist=False, use_collectives=True,
):  # fmt: skip
    """Copy the state now and save it in a thread; a concurrent.futures.Future of the Metadata. Several processes do so
    in a group of its own, since what the program exchanges meanwhile must not mix with it: one is made for it by the
    first call that names none. Saves in one group follow each other.

    Args:
        state_dict, checkpoint_id, storage_writer, planner, process_group, use_collectives: as in `save`.
        async_checkpointer_type: THREAD; PROCESS is refused.
        async_stager: who copies; with one that copies in the background, an AsyncSaveResponse is given.
        no_dist: this process alone.
    """
    _settings("async_save", planner, DefaultSavePlanner)
    if AsyncCheckpointerType(async_checkpointer_type) is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError("async_save: a process that saves is not in cresset; AsyncCheckpointerType.THREAD is")
    states = _states(state_dict)
    copied = _copied(states) if async_stager is None else async_stager.stage(states)
    future = concurrent.futures.Future()
    alone = no_dist or not world.is_initialized()
    if not alone and process_group is None:
        everybody = world.default_group("async_save")
        if everybody not in _groups:
            _groups[everybody] = world.new_group(group_desc="checkpoints that are saved in the background")
        process_group = _groups[everybody]
    before = None
    if not alone:
        before, _latest[process_group] = _latest.get(process_group), future
        world.World.background.add(future)
        future.add_done_callback(world.World.background.discard)
    in_background = hasattr(copied, "result")

    def run():
        if before is not None:
            concurrent.futures.wait([before])
        try:
            result = save(
                copied.result() if in_background else copied,
                checkpoint_id=checkpoint_id,
                storage_writer=storage_writer,
                planner=planner,
                process_group=process_group,
                no_dist=alone,
            )
            future.set_result(result)
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, name="cresset-checkpoint").start()
    return AsyncSaveResponse(copied, future) if in_background else future


def _copied(value):
    if isinstance(value, cresset.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    return value


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """PyTorch's older name of `save`."""
    if coordinator_rank != 0:
        raise NotImplementedError("save_state_dict: rank 0 writes the metadata; coordinator_rank must be 0")
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """PyTorch's older name of `load`."""
    if coordinator_rank != 0:
        raise NotImplementedError("load_state_dict: rank 0 reads for all; coordinator_rank must be 0")
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """The state of an optimizer that was saved with a model: {optimizer_key: state}. State in the shape of a
    distributed parameter is distributed as it is.

    Args:
        model_state_dict: the model's, by names that the optimizer's state has, too.
        optimizer_key: under which name it was saved.
        storage_reader: of the checkpoint.
        planner: a DefaultLoadPlanner; others are refused.
    """
    settings = _settings("load_sharded_optimizer_state_dict", planner, DefaultLoadPlanner)
    metadata = storage_reader.read_metadata()
    made = _room_for(metadata, lambda path: path[0] == optimizer_key)
    if not made:
        raise KeyError(f"load_sharded_optimizer_state_dict: the checkpoint has nothing under {optimizer_key!r}")
    flat, paths = flatten(made)
    for name, value in flat.items():
        for key in paths[name]:
            like = model_state_dict.get(key) if isinstance(key, str) else None
            if isinstance(like, DTensor) and isinstance(value, cresset.Tensor) and like.shape == value.shape:
                put(made, paths[name], cresset.zeros_like(like, dtype=value.dtype).detach())
    _load(made, storage_reader, settings.allow_partial_load)
    return made


_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name in (
        "format_utils",
        "optimizer",
        "staging",
        "state_dict",
        "state_dict_loader",
        "state_dict_saver",
        "stateful",
    ):  # imported when they are first asked for
        import importlib

        return importlib.import_module(f".{name}", __name__)
    return _missing(name)
