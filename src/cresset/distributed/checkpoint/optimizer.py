"""torch.distributed.checkpoint.optimizer: the state of an optimizer out of a checkpoint."""

import cresset

from ..tensor.dtensor import DTensor
from .default_planner import DefaultLoadPlanner, room_for
from .flattening import flatten, put
from .planner import LoadPlanner
from .processes import Alone
from .state_dict_loader import fetch
from .state_dict_saver import planner_of

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """The state of an optimizer that was saved with a model: {optimizer_key: state}. State in the shape of a
    distributed parameter is distributed as it is.

    Args:
        model_state_dict: the model's, by names that the optimizer's state has, too.
        optimizer_key: under which name it was saved.
        storage_reader: of the checkpoint.
        planner: a LoadPlanner; by default a DefaultLoadPlanner.
    """
    made = room_for(storage_reader.read_metadata(), lambda path: path[0] == optimizer_key)
    if not made:
        raise KeyError(f"load_sharded_optimizer_state_dict: the checkpoint has nothing under {optimizer_key!r}")
    flat, paths = flatten(made)
    for name, value in flat.items():
        for key in paths[name]:
            like = model_state_dict.get(key) if isinstance(key, str) else None
            if isinstance(like, DTensor) and isinstance(value, cresset.Tensor) and like.shape == value.shape:
                put(made, paths[name], cresset.zeros_like(like, dtype=value.dtype).detach())
    planner = planner_of(planner, LoadPlanner, DefaultLoadPlanner, "load_sharded_optimizer_state_dict")
    fetch(made, storage_reader, planner, Alone())
    return made
