"""Questions that programs ask the tracer."""

from .. import _native
from ..compiler.counting import counters

__all__ = ["counters", "is_compile_supported"]


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
