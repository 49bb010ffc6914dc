"""Tensors and models whose parts lie on several processes: their types, for programs that ask whether something is one.
None can be made yet, and nothing is one; where a program tries, the error says so.
"""

import dataclasses

from .._native import Tensor
from ..nn import Module

__all__ = ["CPUOffloadPolicy", "DTensor", "DeviceMesh", "FSDPModule", "FullyShardedDataParallel",
    "MixedPrecisionPolicy", "OffloadPolicy", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor",
    "fully_shard", "init_device_mesh"]  # fmt: skip


def _refusal(what):
    return NotImplementedError(
        f"{what}: tensors and models cannot be spread over processes in this build; DistributedDataParallel, with a "
        "copy of the model in each process, can be used"
    )


class DeviceMesh:
    """A grid of processes. Refused: see the module."""

    def __init__(self, device_type, mesh, *args, **kwargs):
        raise _refusal(f"DeviceMesh({device_type!r}, {mesh!r})")


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """Refused: see the module."""
    raise _refusal(f"init_device_mesh({device_type!r}, {mesh_shape!r})")


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
    """Cut along a dimension of the tensor."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """How many of the places along a dimension a process has, and from which one on: equal parts, rounded up, the
        last ones smaller or empty.
        """
        part = -(-curr_local_size // num_chunks)
        first = min(part * rank, curr_local_size)
        return min(part, curr_local_size - first), first


@dataclasses.dataclass(frozen=True)
class _StridedShard(Shard):
    """Cut along a dimension that is cut already, `split_factor` times, by a later dimension of the grid."""

    split_factor: int = dataclasses.field(default=1, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Whole on each process."""


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Parts that a reduction puts together."""

    reduce_op: str = "sum"


class DTensor(Tensor):
    """A tensor whose parts lie on several processes. Refused: see the module."""

    def __new__(cls, *args, **kwargs):
        raise _refusal("DTensor")

    @staticmethod
    def from_local(local_tensor, *args, **kwargs):
        """Refused: see the module."""
        raise _refusal(f"DTensor.from_local of shape {tuple(local_tensor.shape)}")


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """Refused: see the module."""
    raise _refusal(f"distribute_tensor of shape {tuple(tensor.shape)}")


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes a spread model computes, reduces and gives its results."""

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


class OffloadPolicy:
    """Where the parameters of a spread model lie between uses: on their device."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """In the CPU's memory, pinned if that is asked for."""

    pin_memory: bool = True


class FullyShardedDataParallel(Module):
    """A model whose parameters are spread over the processes. Refused: see the module."""

    def __init__(self, module, *args, **kwargs):
        raise _refusal(f"FullyShardedDataParallel({type(module).__name__})")


class FSDPModule:
    """What `fully_shard` makes of a module's class. Refused: see the module."""

    def __new__(cls, *args, **kwargs):
        raise _refusal("FSDPModule")


def fully_shard(module, **kwargs):
    """Refused: see the module."""
    raise _refusal(f"fully_shard({type(module).__name__})")
