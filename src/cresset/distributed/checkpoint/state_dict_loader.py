"""torch.distributed.checkpoint.state_dict_loader: loading."""

from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlanner
from .processes import each, first, processes_of
from .state_dict_saver import knows_its_state, planner_of, states_of, storage_of
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Load what `save` has written into the tensors of `state_dict`; other entries are replaced.

    Args:
        state_dict: nested, with the entries to load; others of the checkpoint are left alone.
        checkpoint_id: the folder, or another place that the `storage_reader` knows.
        storage_reader: a StorageReader; by default a FileSystemReader.
        planner: a LoadPlanner, which decides what is read into what; by default a DefaultLoadPlanner, which may allow
            entries that the checkpoint lacks.
        process_group: by default all processes.
        no_dist: this process alone.
    """
    reader = storage_of(storage_reader, checkpoint_id, StorageReader, FileSystemReader, "load")
    planner = planner_of(planner, LoadPlanner, DefaultLoadPlanner, "load")
    states = states_of(state_dict)
    fetch(states, reader, planner, processes_of(process_group, no_dist))
    for key, state in states.items():
        if key in state_dict and knows_its_state(state_dict[key]):
            state_dict[key].load_state_dict(state)
        else:
            state_dict[key] = state


def fetch(state_dict, reader, planner, processes):
    """All plan and read (Note [The way of a plan])."""
    coordinator = processes.rank == 0

    def plan():
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, coordinator)
        reader.set_up_storage_reader(metadata, coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    local = each(processes, "load", plan)
    plans = first(processes, "load", lambda: reader.prepare_global_plan(planner.create_global_plan(local)))
    each(processes, "load", lambda: reader.read_data(planner.finish_plan(plans[processes.rank]), planner).wait())


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """PyTorch's older name of `load`."""
    if coordinator_rank != 0:
        raise NotImplementedError("load_state_dict: rank 0 reads for all; coordinator_rank must be 0")
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
