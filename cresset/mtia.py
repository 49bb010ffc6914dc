"""PyTorch's torch.mtia, for Meta's accelerators, on a machine without one."""

__all__ = [
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "synchronize",
]


def is_available():
    """Whether there is such a device.

    >>> cresset.mtia.is_available()
    False
    """
    return False


def device_count():
    """How many devices there are."""
    return 0


def is_initialized():
    """Whether the backend was used already."""
    return False


def manual_seed(seed):
    """Start the current device's random numbers from a seed. Without a device nothing happens."""
    int(seed)


def manual_seed_all(seed):
    """Start all devices' random numbers from a seed. Without a device nothing happens."""
    int(seed)


def memory_allocated(device=None):
    """Bytes that tensors use."""
    return 0


def max_memory_allocated(device=None):
    """The most bytes that tensors used at a time."""
    return 0


def memory_stats(device=None):
    """All figures of memory, by name."""
    return {}


def _needs_device(name, doc):
    def function(*args, **kwargs):
        raise RuntimeError(f"Cannot execute {name}() without MTIA backend.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


current_device = _needs_device("current_device", "The number of the current device.")
current_stream = _needs_device("current_stream", "The stream that work goes to.")
default_stream = _needs_device("default_stream", "The first stream of a device.")
empty_cache = _needs_device("empty_cache", "Give cached memory back to the device.")
get_device_capability = _needs_device("get_device_capability", "What a device can do.")
get_device_properties = _needs_device("get_device_properties", "What a device is.")
set_device = _needs_device("set_device", "Make a device the current one.")
synchronize = _needs_device("synchronize", "Wait for all work.")
