"""Memory of CUDA devices: figures, the cache, and allocators. Without a device nothing is in use."""

import collections
import contextlib

from .. import _native
from .absent import require, require_for
from .devices import device_index, get_device_name

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "change_current_allocator", "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats", "host_memory_stats_as_nested_dict",
    "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
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


def memory_stats(device=None):
    """All figures, by name, such as "allocated_bytes.all.peak".

    >>> isinstance(cresset.cuda.memory_stats(), dict)
    True
    """
    found = {}

    def add(prefix, value):
        if isinstance(value, dict):
            for name, inner in value.items():
                add(f"{prefix}.{name}" if prefix else name, inner)
        else:
            found[prefix] = value

    add("", memory_stats_as_nested_dict(device))
    return collections.OrderedDict(sorted(found.items()))


def host_memory_stats():
    """Figures of pinned memory, by name."""
    return collections.OrderedDict()


def host_memory_stats_as_nested_dict():
    """Figures of pinned memory, in nested dictionaries."""
    return {}


def _figure(name, path, doc):
    def figure(device=None):
        if not _started():
            return 0
        return _native_cuda.memory_statistics(device_index(device))[path[0]]["all"][path[1]]

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = doc
    return figure


memory_allocated = _figure("memory_allocated", ("allocated_bytes", "current"), "Bytes that tensors use.")
max_memory_allocated = _figure("max_memory_allocated", ("allocated_bytes", "peak"), "The most bytes that tensors used at a time.")
memory_reserved = _figure("memory_reserved", ("reserved_bytes", "current"), "Bytes that the allocator holds.")
max_memory_reserved = _figure("max_memory_reserved", ("reserved_bytes", "peak"), "The most bytes that the allocator held at a time.")
memory_cached = _figure("memory_cached", ("reserved_bytes", "current"), "The old name of memory_reserved.")
max_memory_cached = _figure("max_memory_cached", ("reserved_bytes", "peak"), "The old name of max_memory_reserved.")


def _reset(name, function, doc):
    def reset(device=None):
        if _started():
            function(device_index(device))

    reset.__name__ = reset.__qualname__ = name
    reset.__doc__ = doc
    return reset


reset_peak_memory_stats = _reset("reset_peak_memory_stats", _native_cuda.reset_peak_statistics, "Start the maxima anew.")
reset_accumulated_memory_stats = _reset("reset_accumulated_memory_stats", _native_cuda.reset_accumulated_statistics, "Start the sums anew.")
reset_max_memory_allocated = _reset("reset_max_memory_allocated", _native_cuda.reset_peak_statistics, "The old name of reset_peak_memory_stats.")
reset_max_memory_cached = _reset("reset_max_memory_cached", _native_cuda.reset_peak_statistics, "The old name of reset_peak_memory_stats.")


def reset_peak_host_memory_stats():
    """Start the maxima of pinned memory anew."""


def reset_accumulated_host_memory_stats():
    """Start the sums of pinned memory anew."""


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
        ("Allocated memory", "allocated_bytes", _size), ("Active memory", "active_bytes", _size), ("Requested memory", "requested_bytes", _size),
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
            out.append(f"| {label:22} | " + " | ".join(f"{write(one[k]):>12}" for k in ("current", "peak", "allocated", "freed")) + " |")
    return "\n".join([*out, line, ""])


def memory_snapshot(mempool_id=None, include_traces=True):
    """What the allocator holds: a list of segments, each with its blocks, as dictionaries."""
    if not _started():
        return []
    segments = []
    for index in range(_native_cuda.device_count()):
        for address, bytes, stream, large, pool, blocks in _native_cuda.memory_snapshot(index):
            if mempool_id is not None and mempool_id[1] != pool:
                continue
            listed = [
                {"address": at, "size": size, "requested_size": requested, "state": state, "frames": _frames(site)}
                for at, size, requested, state, site in blocks
            ]
            used = sum(b["size"] for b in listed if b["state"] == "active_allocated")
            active = sum(b["size"] for b in listed if b["state"] != "inactive")
            segments.append({
                "device": index, "address": address, "total_size": bytes, "allocated_size": used, "active_size": active,
                "requested_size": sum(b["requested_size"] for b in listed), "stream": stream, "segment_type": "large" if large else "small",
                "segment_pool_id": (0, pool), "is_expandable": False, "frames": [], "blocks": listed,
            })  # fmt: skip
    return segments


def _frames(site):
    """A place "file.py(12): function" in the form of PyTorch's snapshots."""
    if not site:
        return []
    file, _, rest = site.rpartition("(")
    line, _, name = rest.partition("): ")
    name, _, module = name.partition(", in module ")
    return [{"filename": file, "line": int(line), "name": name, "module": module}]


def mem_get_info(device=None):
    """(free bytes, all bytes) of a device."""
    require()
    return _native_cuda.memory_info(device_index(device))


def list_gpu_processes(device=None):
    """The processes that use a device, as text."""
    return "pynvml module not found, please install nvidia-ml-py"


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
    """Use the cache or not. It is always used."""


@contextlib.contextmanager
def caching_allocator_disabled():
    """Inside, the cache is not used. It is always used."""
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
    """A pool of memory of its own; not supported outside of graphs."""

    def __new__(cls, *args, **kwargs):
        require_for(cls.__name__)
        raise NotImplementedError("MemPool: only graphs have pools of their own (graph_pool_handle)")


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Inside, memory comes from a pool; not supported outside of graphs."""
    require()
    raise NotImplementedError("use_mem_pool: only graphs have pools of their own (graph_pool_handle)")
    yield
