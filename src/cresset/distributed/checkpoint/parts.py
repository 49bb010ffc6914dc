"""Which part of a tensor a process writes, and which it reads: of distributed tensors its own."""

from typing import NamedTuple

import cresset

from ..tensor.dtensor import DTensor


class Part(NamedTuple):
    """What a process has of a tensor: the elements, where in the whole they begin, and the whole's shape."""

    local: cresset.Tensor
    offset: tuple
    shape: tuple

    @property
    def sizes(self):
        return tuple(self.local.shape)


def part_of(tensor):
    """The part of a tensor that lies in this process; of a plain one, all."""
    if not isinstance(tensor, DTensor):
        return Part(tensor, (0,) * tensor.dim(), tuple(tensor.shape))
    if any(p.is_partial() for p in tensor.placements):
        raise ValueError(
            f"save: a DTensor of parts of a sum cannot be saved, placements {tensor.placements}; redistribute it first"
        )
    _, offset = tensor._spec.local_shape()
    return Part(tensor._local_tensor, offset or (0,) * tensor.dim(), tuple(tensor.shape))


def written_here(tensor):
    """Whether this process writes its part: copies of it are written by the first that has it, empty ones by nobody."""
    place = tensor.device_mesh.get_coordinate()
    if place is None or not tensor._local_tensor.numel():
        return False
    return all(at == 0 for at, p in zip(place, tensor.placements, strict=True) if p.is_replicate())


def overlap(offset, sizes, saved_offset, saved_sizes):
    """Where a saved piece meets a part: [(start in the part, start in the piece, length)] by dimension; None:
    nowhere.

    >>> overlap((2, 0), (4, 3), (0, 0), (3, 3))
    [(0, 2, 1), (0, 0, 3)]
    """
    found = []
    for mine, length, start, size in zip(offset, sizes, saved_offset, saved_sizes, strict=True):
        first, end = max(mine, start), min(mine + length, start + size)
        if end <= first:
            return None
        found.append((first - mine, first - start, end - first))
    return found


def narrow(tensor, offsets, lengths):
    """A piece of a tensor: so many elements from there on, by dimension.

    >>> narrow(cresset.arange(4), (1,), (2,))
    tensor([1, 2])
    """
    for dim, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        tensor = tensor.narrow(dim, start, length)
    return tensor
