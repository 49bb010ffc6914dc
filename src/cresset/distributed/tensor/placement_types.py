"""torch.distributed.tensor.placement_types: how a tensor lies on the processes along one dimension of their grid."""

import dataclasses

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]


class Placement:
    """How a tensor lies on the processes along one dimension of their grid."""

    def is_shard(self, dim=None):
        """Whether it is cut along a dimension (this one, if it is named)."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether the processes have parts of a reduction (this one, if it is named)."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Cut along a dimension of the tensor, in equal parts rounded up: the last ones are smaller or empty.

    >>> cresset.distributed.tensor.Shard(1)
    Shard(dim=1)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """How many of the places along a dimension a process has, and from which one on."""
        part = -(-curr_local_size // num_chunks)
        first = min(part * rank, curr_local_size)
        return min(part, curr_local_size - first), first

    def __str__(self):
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True)
class _StridedShard(Shard):
    """Cut along a dimension that later dimensions of the grid have cut before, in `split_factor` parts."""

    split_factor: int = dataclasses.field(default=1, kw_only=True)

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Whole on each process.

    >>> cresset.distributed.tensor.Replicate()
    Replicate()
    """

    def __str__(self):
        return "R"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Each process has a part of a reduction: "sum", "avg", "product", "max" or "min".

    >>> cresset.distributed.tensor.Partial()
    Partial(sum)
    """

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"


for _class in (Placement, Shard, _StridedShard, Replicate, Partial):
    _class.__module__ = "torch.distributed.tensor.placement_types"
