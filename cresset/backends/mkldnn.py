"""oneDNN, which computes products and convolutions on the CPU."""

from .. import _native
from .settings import Namespace, make_flags

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_available", "set_flags", "verbose"]

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
enabled = True
deterministic = False
allow_tf32 = None
fp32_precision = "none"
matmul, conv, rnn = Namespace(fp32_precision="none"), Namespace(fp32_precision="none"), Namespace(fp32_precision="none")

set_flags, flags = make_flags(__name__, enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none")


def is_available():
    """Whether the build has oneDNN."""
    return _native.build_info()["onednn"] is not None


def is_acl_available():
    """Whether the build has Arm's library."""
    return False


class verbose:
    """Inside, oneDNN would print what it does; this build's copy is silent."""

    def __init__(self, level):
        if level not in (VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION):
            raise ValueError(f"verbose: the level is 0, 1 or 2, got {level}")
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
