"""Memory of CUDA devices: figures, the cache, and allocators. Without a backend nothing is in use."""

import collections
import contextlib

from .absent import Absent, require

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "change_current_allocator", "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats", "host_memory_stats_as_nested_dict",
    "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip


def empty_cache():
    """Give cached memory back to the device. Without one there is nothing to do."""


def memory_stats(device=None):
    """All figures, by name.

    >>> cresset.cuda.memory_stats()
    OrderedDict()
    """
    return collections.OrderedDict()


def memory_stats_as_nested_dict(device=None):
    """All figures, in nested dictionaries."""
    return {}


def host_memory_stats():
    """Figures of pinned memory, by name."""
    return collections.OrderedDict()


def host_memory_stats_as_nested_dict():
    """Figures of pinned memory, in nested dictionaries."""
    return {}


def _figure(name, doc):
    def figure(device=None):
        return 0

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = doc
    return figure


memory_allocated = _figure("memory_allocated", "Bytes that tensors use.")
max_memory_allocated = _figure("max_memory_allocated", "The most bytes that tensors used at a time.")
memory_reserved = _figure("memory_reserved", "Bytes that the allocator holds.")
max_memory_reserved = _figure("max_memory_reserved", "The most bytes that the allocator held at a time.")
memory_cached = _figure("memory_cached", "The old name of memory_reserved.")
max_memory_cached = _figure("max_memory_cached", "The old name of max_memory_reserved.")


def _reset(name, doc):
    def reset(device=None):
        return None

    reset.__name__ = reset.__qualname__ = name
    reset.__doc__ = doc
    return reset


reset_peak_memory_stats = _reset("reset_peak_memory_stats", "Start the maxima anew.")
reset_accumulated_memory_stats = _reset("reset_accumulated_memory_stats", "Start the sums anew.")
reset_max_memory_allocated = _reset("reset_max_memory_allocated", "The old name of reset_peak_memory_stats.")
reset_max_memory_cached = _reset("reset_max_memory_cached", "The old name of reset_peak_memory_stats.")


def reset_peak_host_memory_stats():
    """Start the maxima of pinned memory anew."""


def reset_accumulated_host_memory_stats():
    """Start the sums of pinned memory anew."""


def memory_summary(device=None, abbreviated=False):
    """The figures as text."""
    return "CUDA memory summary: no CUDA device"


def memory_snapshot(mempool_id=None, include_traces=True):
    """What the allocator holds."""
    return []


def mem_get_info(device=None):
    """(free bytes, all bytes) of a device."""
    require()


def list_gpu_processes(device=None):
    """The processes that use a device, as text."""
    return "pynvml module not found, please install nvidia-ml-py"


def get_per_process_memory_fraction(device=None):
    """The share of the memory that this process may use."""
    require()


def set_per_process_memory_fraction(fraction, device=None):
    """Say which share of the memory this process may use."""
    require()


def get_allocator_backend():
    """The name of the allocator."""
    require()


def caching_allocator_alloc(size, device=None, stream=None):
    """Memory from the allocator, as an address."""
    require()


def caching_allocator_delete(mem_ptr):
    """Give memory of caching_allocator_alloc back."""
    require()


def caching_allocator_enable(value=True):
    """Use the cache or not."""


@contextlib.contextmanager
def caching_allocator_disabled():
    """Inside, the cache is not used."""
    yield


def change_current_allocator(allocator):
    """Use another allocator from now on."""
    require()


class CUDAPluggableAllocator(Absent):
    """An allocator from a shared library."""


class MemPool(Absent):
    """A pool of memory of its own."""


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Inside, memory comes from a pool."""
    require()
    yield
