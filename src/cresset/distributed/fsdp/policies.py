"""What fully_shard is told: in which dtypes it computes, and where parameters lie between uses."""

import dataclasses

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes a spread model computes, reduces and gives its results.

    Args:
        param_dtype: of parameters while they are whole; by default their own.
        reduce_dtype: of gradients while they are reduced; by default that of `param_dtype`.
        output_dtype: of what `forward` gives; by default as it comes.
        cast_forward_inputs: whether inputs are brought to `param_dtype`.
    """

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


class OffloadPolicy:
    """Where the parameters of a spread model lie between uses: on their device."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """In the CPU's memory: parts of parameters, gradients and the optimizer's state.

    Args:
        pin_memory: keep them in memory that a GPU can read directly.
    """

    pin_memory: bool = True


@dataclasses.dataclass(frozen=True)
class DataParallelMeshDims:
    """Which dimensions of a grid, by name, cut parameters and which repeat them."""

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None


for _class in (MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy):
    _class.__module__ = "torch.distributed.fsdp._fully_shard._fsdp_api"
