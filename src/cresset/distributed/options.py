"""Names of PyTorch's settings: of hooks and collectives."""

import enum


class BuiltinCommHookType(enum.IntEnum):
    """The hooks that DistributedDataParallel has of itself."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1
