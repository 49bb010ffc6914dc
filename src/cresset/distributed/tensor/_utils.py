"""torch.distributed.tensor._utils: which part of a tensor a process has."""

from ._dtensor_spec import part_of

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """The shape of this process's part of a tensor, and where in the whole it begins.

    Args:
        mesh: has `shape`, and `get_coordinate()` for this process's place in the grid, None outside of it.
        placements: one for each dimension of the grid.
    """
    return part_of(global_shape, mesh, placements)
