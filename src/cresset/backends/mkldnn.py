"""oneDNN, which cresset does not use: its products and convolutions are its own. The settings are kept for programs
that set them.
"""

import warnings

from .precision import FloatPrecision, precision_of, set_precision
from .settings import Kept, Made, make_flags, make_settings

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_available", "set_flags", "verbose"]

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
matmul, conv, rnn = (FloatPrecision("mkldnn", operation) for operation in ("matmul", "conv", "rnn"))


def _no_tf32(_, value):
    if value is not None:
        warnings.warn(
            (
                "mkldnn.allow_tf32: TF32 acceleration on top of oneDNN is available for Intel GPUs only, and there is "
                "none here"
            ),
            stacklevel=4,
        )


make_settings(
    __name__,
    enabled=Kept(True),
    deterministic=Kept(False),
    allow_tf32=Kept(None, _no_tf32),
    fp32_precision=Made(lambda: precision_of("mkldnn", "all"), lambda value: set_precision("mkldnn", "all", value)),
)
set_flags, flags = make_flags(__name__, enabled=False, deterministic=False, allow_tf32=None, fp32_precision="none")


def is_available():
    """Whether the build has oneDNN."""
    return False


def is_acl_available():
    """Whether the build has Arm's library."""
    return False


class verbose:
    """Inside, oneDNN would print what it does; there is none here, so a level above 0 is refused."""

    def __init__(self, level):
        if level not in (VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION):
            raise ValueError(f"verbose: the level is 0, 1 or 2, got {level}")
        self.level = level

    def __enter__(self):
        if self.level != VERBOSE_OFF:
            raise RuntimeError(
                f"mkldnn.verbose: this build has nothing to print at level {self.level}; cresset.profiler tells what "
                "runs"
            )
        return self

    def __exit__(self, *_):
        return False
