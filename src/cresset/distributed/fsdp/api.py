"""torch.distributed.fsdp.api: the settings of FullyShardedDataParallel."""

import dataclasses
from collections.abc import Sequence
from enum import Enum, auto

from ...nn.norm import _BatchNorm

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What is cut: everything (memory is given back after forward), everything but between forward and backward,
    nothing, or the first two inside groups that are copies of each other.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next parameters are brought together in backward: before or after the gradients of the present ones."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class OptimStateKeyType(Enum):
    """How parameters are called in the state of an optimizer."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class StateDictType(Enum):
    """What a state_dict holds: whole tensors, each process's part, or distributed tensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclasses.dataclass
class MixedPrecision:
    """In which dtypes it computes, reduces, and keeps buffers; whether inputs are brought to the first."""

    param_dtype: object = None
    reduce_dtype: object = None
    buffer_dtype: object = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclasses.dataclass
class CPUOffload:
    """Whether parts of parameters and gradients lie in the CPU's memory."""

    offload_params: bool = False


@dataclasses.dataclass
class StateDictConfig:
    """Whether the tensors are brought to the CPU."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """Whether only the first process gets the whole."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalStateDictConfig(StateDictConfig):
    """Each process's part."""


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Distributed tensors."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    """Whether the tensors are brought to the CPU."""

    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whether only the first process gets the whole."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Each process's part."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Distributed tensors."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class StateDictSettings:
    """What state_dict gives."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
