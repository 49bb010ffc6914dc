"""Names of PyTorch's settings: of hooks and collectives."""

import enum
import os


class BuiltinCommHookType(enum.IntEnum):
    """The hooks that DistributedDataParallel has of itself."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


class DebugLevel(enum.IntEnum):
    """How much is checked, by PyTorch's names. Here everything always is."""

    OFF = 0
    INFO = 1
    DETAIL = 2


class _Level:
    value = None


def get_debug_level():
    """What set_debug_level or TORCH_DISTRIBUTED_DEBUG says.

    >>> cresset.distributed.get_debug_level().name
    'OFF'
    """
    if _Level.value is None:
        set_debug_level_from_env()
    return _Level.value


def set_debug_level(level):
    """Say how much PyTorch would check. Fingerprints, records and names of unused parameters are always there here."""
    _Level.value = DebugLevel(level)


def set_debug_level_from_env():
    """Read TORCH_DISTRIBUTED_DEBUG: OFF, INFO or DETAIL."""
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if text not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, not {text!r}")
    _Level.value = DebugLevel[text]
