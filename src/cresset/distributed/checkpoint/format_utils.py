"""torch.distributed.checkpoint.format_utils: between a folder that several processes wrote and a file of torch.save."""

import cresset

from .default_planner import _EmptyStateDictLoadPlanner
from .state_dict_loader import load
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """PyTorch's name of `load` inside of its library."""
    if coordinator_rank != 0:
        raise NotImplementedError("_load_state_dict: rank 0 reads for all; coordinator_rank must be 0")
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write a checkpoint's whole state as a file that torch.load reads.

    Args:
        dcp_checkpoint_dir: the checkpoint's folder.
        torch_save_path: the file.
    """
    state: dict = {}
    load(state, checkpoint_id=dcp_checkpoint_dir, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    cresset.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write the state in a file of torch.save as a checkpoint.

    Args:
        torch_save_path: the file, which is read as data.
        dcp_checkpoint_dir: the checkpoint's folder.
    """
    save(cresset.load(torch_save_path, weights_only=True), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
