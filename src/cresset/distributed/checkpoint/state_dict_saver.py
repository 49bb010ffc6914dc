"""torch.distributed.checkpoint.state_dict_saver: saving, now or in the background."""

import concurrent.futures
import enum
import threading
import weakref
from dataclasses import dataclass
from typing import Any

from .. import world
from .api import CheckpointException
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .planner import SavePlanner
from .processes import each, first, processes_of
from .staging import AsyncStager, copied
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


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
        checkpoint_id: the folder, or another place that the `storage_writer` knows.
        storage_writer: a StorageWriter; by default a FileSystemWriter.
        planner: a SavePlanner, which decides what is written by whom; by default a DefaultSavePlanner.
        process_group: by default all processes.
        no_dist: this process alone.
        use_collectives: PyTorch's way to write one `.metadata` for each process when it is False; there is always one
            here.

    Returns: the Metadata.
    """
    writer = storage_of(storage_writer, checkpoint_id, StorageWriter, FileSystemWriter, "save")
    planner = planner_of(planner, SavePlanner, DefaultSavePlanner, "save")
    return commit(states_of(state_dict), writer, planner, processes_of(process_group, no_dist))


def commit(state_dict, writer, planner, processes):
    """All plan and write; when all have written, one makes it the checkpoint (Note [The way of a plan])."""
    coordinator = processes.rank == 0

    def plan():
        writer.set_up_storage_writer(coordinator)
        planner.set_up_planner(state_dict, writer.storage_meta(), coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    local = each(processes, "save", plan)

    def plan_of_all():
        plans, metadata = planner.create_global_plan(local)
        return writer.prepare_global_plan(plans), metadata

    plans, metadata = first(processes, "save", plan_of_all)

    def write():
        return writer.write_data(planner.finish_plan(plans[processes.rank]), planner).wait()

    written = each(processes, "save", write)

    def finish():
        writer.finish(metadata, written)
        return metadata

    return first(processes, "save", finish)


def storage_of(given, checkpoint_id, kind, default, who):
    """The storage that is asked for, told where to begin."""
    if given is None:
        if checkpoint_id is None:
            raise RuntimeError(f"{who}: `checkpoint_id` must be specified if storage is None.")
        if not default.validate_checkpoint_id(checkpoint_id):
            raise RuntimeError(
                f"{who}: Cannot detect which storage to use for {checkpoint_id!r}: it is no folder that can be made "
                f"here; pass a {kind.__name__}"
            )
        return default(checkpoint_id)
    if not isinstance(given, kind):
        raise TypeError(f"{who}: storage must be a {kind.__name__}, not {type(given).__name__}")
    if checkpoint_id is not None:
        given.reset(checkpoint_id)
    return given


def planner_of(given, kind, default, who):
    """The planner that is asked for."""
    if given is None:
        return default()
    if not isinstance(given, kind):
        raise TypeError(f"{who}: planner must be a {kind.__name__}, not {type(given).__name__}")
    return given


def states_of(state_dict):
    """The state of entries that know theirs: modules, optimizers."""
    return {k: v.state_dict() if knows_its_state(v) else v for k, v in state_dict.items()}


def knows_its_state(value):
    """Whether something is asked for its state, and given it back."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


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
        async_stager: who copies, by default the storage_writer if it is a stager; with one that copies in the
            background, an AsyncSaveResponse is given.
        no_dist: this process alone.
    """
    if AsyncCheckpointerType(async_checkpointer_type) is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError("async_save: a process that saves is not in cresset; AsyncCheckpointerType.THREAD is")
    states = states_of(state_dict)
    if async_stager is None and isinstance(storage_writer, AsyncStager):
        async_stager = storage_writer
    staged = copied(states) if async_stager is None else async_stager.stage(states)
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
    in_background = hasattr(staged, "result")

    def run():
        if before is not None:
            concurrent.futures.wait([before])
        try:
            result = save(
                staged.result() if in_background else staged,
                checkpoint_id=checkpoint_id,
                storage_writer=storage_writer,
                planner=planner,
                process_group=process_group,
                no_dist=alone,
            )
            future.set_result(result)
        except (Exception, CheckpointException) as error:  # the second is no Exception, as PyTorch's
            future.set_exception(error)

    threading.Thread(target=run, name="cresset-checkpoint").start()
    return AsyncSaveResponse(staged, future) if in_background else future


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """PyTorch's older name of `save`."""
    if coordinator_rank != 0:
        raise NotImplementedError("save_state_dict: rank 0 writes the metadata; coordinator_rank must be 0")
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )
