"""torch.distributed.tensor._utils: which part of a tensor a process has."""

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """The shape of this process's part of a tensor, and where in the whole it begins.

    Args:
        mesh: has `shape`, and `get_coordinate()` for this process's place in the grid, None outside of it.
        placements: one for each dimension of the grid.
    """
    place = mesh.get_coordinate()
    if place is None:
        return (0,), ()
    shape, offset = list(global_shape), [0] * len(global_shape)
    for placement, parts, part in zip(placements, mesh.shape, place, strict=True):
        if placement.is_shard():
            size, first = placement.local_shard_size_and_offset(shape[placement.dim], parts, part)
            shape[placement.dim], offset[placement.dim] = size, offset[placement.dim] + first
    return tuple(shape), tuple(offset)
