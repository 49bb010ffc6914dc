"""PyTorch's torch.accelerator: the accelerator of this machine, whichever it is."""

from . import _native

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index", "empty_cache", "get_memory_info",
    "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def _module():
    """The module of the accelerator; an error if there is none."""
    from . import cuda

    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return cuda


def is_available():
    """Whether there is an accelerator that can be used."""
    from . import cuda

    return cuda.is_available()


def device_count():
    """How many accelerators there are."""
    from . import cuda

    return cuda.device_count()


def current_accelerator(check_available=False):
    """The accelerator as a device without a number; None if there is none.

    >>> cresset.accelerator.current_accelerator() is None
    True
    """
    return _native.device("cuda") if is_available() else None


def current_device_index():
    """The number of the current accelerator."""
    return _module().current_device()


def set_device_index(device):
    """Make an accelerator the current one."""
    _module().set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device=None):
    """The stream that work goes to."""
    return _module().current_stream(device)


def set_stream(stream):
    """Make a stream the current one."""
    _module().set_stream(stream)


def synchronize(device=None):
    """Wait for all work on an accelerator."""
    _module().synchronize(device)


def get_device_capability(device=None):
    """What an accelerator can do."""
    return _module().get_device_capability(device)


def empty_cache():
    """Give cached memory back to the accelerator."""
    _module().empty_cache()


def empty_host_cache():
    """Give cached pinned memory back to the system."""
    _module()
    _native.empty_host_cache()


def get_memory_info(device_index=None):
    """(free bytes, all bytes) of an accelerator."""
    return _module().mem_get_info(device_index)


def memory_allocated(device_index=None):
    """Bytes that tensors use."""
    return _module().memory_allocated(device_index)


def max_memory_allocated(device_index=None):
    """The most bytes that tensors used at a time."""
    return _module().max_memory_allocated(device_index)


def memory_reserved(device_index=None):
    """Bytes that the allocator holds."""
    return _module().memory_reserved(device_index)


def max_memory_reserved(device_index=None):
    """The most bytes that the allocator held at a time."""
    return _module().max_memory_reserved(device_index)


def memory_stats(device_index=None):
    """All figures of memory, by name."""
    return _module().memory_stats(device_index)


def reset_accumulated_memory_stats(device_index=None):
    """Start the sums anew."""
    _module().reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None):
    """Start the maxima anew."""
    _module().reset_peak_memory_stats(device_index)


class device_index:
    """Inside, the accelerator with this number is the current one; None changes nothing.

    >>> with cresset.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *_):
        if self.idx is not None:
            set_device_index(self.prev_idx)
        return False
