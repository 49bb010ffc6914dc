"""PyTorch's torch.mtia, for Meta's accelerators, on a machine without one."""

# ruff: noqa: F401  (the names are here to be imported)

from .devices.absent import (
    device_count,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    memory_allocated,
    needs_device,
)  # fmt: skip

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


def memory_stats(device=None):
    """All figures of memory, by name."""
    return {}


_needs_device = needs_device(lambda name: RuntimeError(f"Cannot execute {name}() without MTIA backend."))

current_device = _needs_device("current_device", "The number of the current device.")
current_stream = _needs_device("current_stream", "The stream that work goes to.")
default_stream = _needs_device("default_stream", "The first stream of a device.")
empty_cache = _needs_device("empty_cache", "Give cached memory back to the device.")
get_device_capability = _needs_device("get_device_capability", "What a device can do.")
get_device_properties = _needs_device("get_device_properties", "What a device is.")
set_device = _needs_device("set_device", "Make a device the current one.")
synchronize = _needs_device("synchronize", "Wait for all work.")
