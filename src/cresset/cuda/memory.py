"""Memory of CUDA devices: figures, the cache, and allocators. Without a device nothing is in use."""

import collections
import contextlib

from .. import _native
from .absent import require, require_for
from .devices import device_index, get_device_name
from .history import _dump_snapshot, _record_memory_history, _snapshot, segments, timeline  # noqa: F401

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable",
    "change_current_allocator", "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction",
    "host_memory_stats", "host_memory_stats_as_nested_dict",
    "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats",
    "set_per_process_memory_fraction", "timeline", "use_mem_pool",
]  # fmt: skip


_native_cuda = _native.cuda


def _started():
    """Whether a device has been used: if not, its memory is not."""
    return _native_cuda.device_count() > 0 and _native_cuda.is_started()


def empty_cache():
    """Give cached memory that no tensor uses back to the device. Without one there is nothing to do."""
    if _started():
        for index in range(_native_cuda.device_count()):
            if _native_cuda.memory_statistics(index)["segment"]["all"]["current"]:
                _native_cuda.empty_cache(index)


def memory_stats_as_nested_dict(device=None):
    """All figures, in nested dictionaries."""
    return _native_cuda.memory_statistics(device_index(device)) if _started() else {}


def _flat(nested):
    """The same figures, by names with dots, in order."""
    found = {}

    def add(prefix, value):
        if isinstance(value, dict):
            for name, inner in value.items():
                add(f"{prefix}.{name}" if prefix else name, inner)
        else:
            found[prefix] = value

    add("", nested)
    return collections.OrderedDict(sorted(found.items()))


def memory_stats(device=None):
    """All figures, by name, such as "allocated_bytes.all.peak".

    >>> isinstance(cresset.cuda.memory_stats(), dict)
    True
    """
    return _flat(memory_stats_as_nested_dict(device))


def host_memory_stats_as_nested_dict():
    """Figures of pinned memory, in nested dictionaries: blocks and bytes in use, and with those kept for later
    ("segment", "reserved_bytes").
    """
    return _native_cuda.pinned_statistics() if _started() else {}


def host_memory_stats():
    """Figures of pinned memory, by name, such as "allocated_bytes.peak"."""
    return _flat(host_memory_stats_as_nested_dict())


def _figure(name, path, doc):
    def figure(device=None):
        if not _started():
            return 0
        return _native_cuda.memory_statistics(device_index(device))[path[0]]["all"][path[1]]

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = doc
    return figure


memory_allocated = _figure("memory_allocated", ("allocated_bytes", "current"), "Bytes that tensors use.")
max_memory_allocated = _figure(
    "max_memory_allocated", ("allocated_bytes", "peak"), "The most bytes that tensors used at a time."
)
memory_reserved = _figure("memory_reserved", ("reserved_bytes", "current"), "Bytes that the allocator holds.")
max_memory_reserved = _figure(
    "max_memory_reserved", ("reserved_bytes", "peak"), "The most bytes that the allocator held at a time."
)
memory_cached = _figure("memory_cached", ("reserved_bytes", "current"), "The old name of memory_reserved.")
max_memory_cached = _figure("max_memory_cached", ("reserved_bytes", "peak"), "The old name of max_memory_reserved.")


def _reset(name, function, doc):
    def reset(device=None):
        if _started():
            function(device_index(device))

    reset.__name__ = reset.__qualname__ = name
    reset.__doc__ = doc
    return reset


reset_peak_memory_stats = _reset(
    "reset_peak_memory_stats", _native_cuda.reset_peak_statistics, "Start the maxima anew."
)
reset_accumulated_memory_stats = _reset(
    "reset_accumulated_memory_stats", _native_cuda.reset_accumulated_statistics, "Start the sums anew."
)
reset_max_memory_allocated = _reset(
    "reset_max_memory_allocated", _native_cuda.reset_peak_statistics, "The old name of reset_peak_memory_stats."
)
reset_max_memory_cached = _reset(
    "reset_max_memory_cached", _native_cuda.reset_peak_statistics, "The old name of reset_peak_memory_stats."
)


def reset_peak_host_memory_stats():
    """Start the maxima of pinned memory anew."""
    if _started():
        _native_cuda.reset_pinned_peaks()


def reset_accumulated_host_memory_stats():
    """Start the sums of pinned memory anew."""
    if _started():
        _native_cuda.reset_pinned_sums()


def _size(bytes):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(bytes) < 10 * 1024 or unit == "GiB":
            return f"{bytes:.0f} {unit}"
        bytes /= 1024


def memory_summary(device=None, abbreviated=False):
    """The figures as a table."""
    if not _started():
        return "CUDA memory summary: no CUDA device has been used"
    index = device_index(device)
    figures = memory_stats_as_nested_dict(index)
    rows = [
        ("Allocated memory", "allocated_bytes", _size), ("Active memory", "active_bytes", _size),
        ("Requested memory", "requested_bytes", _size),
        ("Reserved memory", "reserved_bytes", _size), ("Non-releasable memory", "inactive_split_bytes", _size),
        ("Allocations", "allocation", str), ("Active allocs", "active", str), ("Reserved segments", "segment", str),
        ("Non-releasable allocs", "inactive_split", str),
    ]  # fmt: skip
    line = "|" + "-" * 24 + ("|" + "-" * 14) * 4 + "|"
    out = [
        f"CUDA memory of cuda:{index} ({get_device_name(index)})",
        f"out of memory: {figures['num_ooms']}   retried after emptying the cache: {figures['num_alloc_retries']}",
        line,
        f"| {'':22} | {'now':>12} | {'peak':>12} | {'allocated':>12} | {'freed':>12} |",
    ]
    for title, name, write in rows:
        out.append(line)
        for pool in ("all",) if abbreviated else ("all", "large_pool", "small_pool"):
            label = title if pool == "all" else f"  from {pool.replace('_', ' ')}"
            one = figures[name][pool]
            out.append(
                f"| {label:22} | "
                + " | ".join(f"{write(one[k]):>12}" for k in ("current", "peak", "allocated", "freed"))
                + " |"
            )
    return "\n".join([*out, line, ""])


def memory_snapshot(mempool_id=None, include_traces=True):
    """What the allocator holds: a list of segments, each with its blocks, as dictionaries."""
    return segments(mempool_id, include_traces)


def mem_get_info(device=None):
    """(free bytes, all bytes) of a device."""
    require()
    return _native_cuda.memory_info(device_index(device))


def list_gpu_processes(device=None):
    """The processes that use a device and how much memory each has, as text."""
    from .management import list_gpu_processes as listed

    return listed(device)


def get_per_process_memory_fraction(device=None):
    """The share of the memory that this process may use."""
    require()
    return _native_cuda.memory_fraction(device_index(device))


def set_per_process_memory_fraction(fraction, device=None):
    """Say which share of the memory this process may use."""
    require()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _native_cuda.set_memory_fraction(device_index(device), fraction)


def get_allocator_backend():
    """The name of the allocator."""
    require()
    return "native"


def caching_allocator_alloc(size, device=None, stream=None):
    """Memory from the allocator, as an address."""
    require()
    index = device_index(device)
    handle = _native_cuda.current_stream(index) if stream is None else getattr(stream, "cuda_stream", stream)
    return _native_cuda.allocate(index, size, handle)


def caching_allocator_delete(mem_ptr):
    """Give memory of caching_allocator_alloc back."""
    require()
    for index in range(_native_cuda.device_count()):
        _native_cuda.free(index, mem_ptr)


def caching_allocator_enable(value=True):
    """Use the cache. It is always used: False is refused."""
    if not value:
        raise NotImplementedError(
            "caching_allocator_enable: memory always comes from the cache; empty_cache() gives back what it holds"
        )


@contextlib.contextmanager
def caching_allocator_disabled():
    """Inside, the cache would not be used. It is always used, so this is refused."""
    caching_allocator_enable(False)
    yield


def change_current_allocator(allocator):
    """Use another allocator from now on; not supported."""
    require()
    raise NotImplementedError("change_current_allocator: only the built-in allocator is there")


class CUDAPluggableAllocator:
    """An allocator from a shared library; not supported."""

    def __new__(cls, *args, **kwargs):
        require_for(cls.__name__)
        raise NotImplementedError("CUDAPluggableAllocator: only the built-in allocator is there")


class MemPool:
    """A pool of memory of its own: what is allocated inside `use_mem_pool` comes from it and goes back to it.

    Args:
        allocator: another allocator; not supported.
        use_on_oom: whether others may take from the pool when memory is short; not supported.
    """

    def __new__(cls, allocator=None, use_on_oom=False, no_split=False):
        require_for(cls.__name__)
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError("MemPool: allocator=, use_on_oom= and no_split= are not supported")
        self = super().__new__(cls)
        self.device, self._number = device_index(None), _native_cuda.new_pool()
        return self

    @property
    def id(self):
        """The pool's name, (0, number), which graphs and memory_snapshot take."""
        return 0, self._number

    def use_count(self):
        """How many blocks of the pool are in use."""
        return sum(block["state"] == "active_allocated" for segment in self.snapshot() for block in segment["blocks"])

    def snapshot(self, include_traces=True):
        """The pool's segments, as memory_snapshot lists them."""
        return segments(self.id, include_traces)

    def __del__(self):
        if hasattr(self, "_number") and _native_cuda is not None:  # not while Python ends
            _native_cuda.release_pool(self.device, self._number)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Inside, memory of a device comes from a pool.

    Args:
        pool: a MemPool.
        device: the current one if it is None.
    """
    require()
    index = device_index(device)
    _native_cuda.begin_pool(index, pool.id[1])
    try:
        yield
    finally:
        _native_cuda.end_pool(index, pool.id[1])
