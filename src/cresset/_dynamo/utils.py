"""Questions that programs ask the tracer."""

import sys
import warnings

from .. import _native
from ..compiler.counting import counters
from . import config

__all__ = ["counters", "disable_cache_limit", "is_compile_supported", "warn_once"]

_said = set()


def warn_once(msg, stacklevel=1):
    """A warning that is given once, whatever filters say.

    >>> cresset._dynamo.utils.warn_once("this model is old")
    """
    if msg not in _said:
        _said.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


def disable_cache_limit():
    """A context in which a function is compiled anew as often as its arguments want it.

    >>> with cresset._dynamo.utils.disable_cache_limit():
    ...     cresset._dynamo.config.recompile_limit > 8
    True
    """
    return config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize)


def is_compile_supported(device_type):
    """Whether `compile` can be used for a device: it runs the code as it is, on every device there is.

    >>> cresset._dynamo.utils.is_compile_supported("cpu")
    True
    """
    kind = _native.device(device_type).type
    if kind == "cpu":
        return True
    from ..accelerator import current_accelerator

    found = current_accelerator()
    return found is not None and found.type == kind
