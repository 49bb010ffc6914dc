"""torch._inductor: the names that programs use of PyTorch's code generator. No code is generated: see
cresset.compiler."""

from ..compiler import MODES, cudagraph_mark_step_begin
from . import config

__all__ = ["config", "cudagraph_mark_step_begin", "list_mode_options"]


def list_mode_options(mode=None, dynamic=None):
    """The settings that the modes of `compile` stand for: none, for each. With `mode` those of one.

    >>> cresset._inductor.list_mode_options("default")
    {}
    """
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    return {} if mode is not None else {name: {} for name in MODES}
