"""PyTorch's torch.cuda. This build has no CUDA backend, so it answers as PyTorch's CPU build does: no devices, no memory in use, and an error for the rest."""

from .. import _native
from . import graphs, memory, nccl, nvtx, profiler, random, streams
from .absent import NOT_COMPILED, require
from .errors import AcceleratorError, CudaError, DeferredCudaCallError, OutOfMemoryError, check_error, cudaStatus  # noqa: F401
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables  # noqa: F401
from .memory import (  # noqa: F401
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import (  # noqa: F401
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, ExternalStream, Stream, StreamContext, stream  # noqa: F401

default_generators = ()
has_half, has_magma = True, False


# ---------------------------------------------------------------- what there is


def is_available():
    """Whether there is a CUDA device that can be used.

    >>> cresset.cuda.is_available()
    False
    """
    return False


def device_count():
    """How many CUDA devices there are."""
    return 0


def is_initialized():
    """Whether the backend was used already."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16."""
    return False


def is_tf32_supported():
    """Whether the current device computes in TF32."""
    return False


def get_arch_list():
    """The architectures that kernels were compiled for: none, they are compiled when first used."""
    return []


def get_gencode_flags():
    """The compiler flags for `get_arch_list`."""
    return ""


# ---------------------------------------------------------------- devices


def _device_index(device, optional=False):
    """The number of a CUDA device given as a number, a name or a device; -1 for None."""
    if isinstance(device, int):
        return device
    if device is None and optional:
        return -1
    device = _native.device(device) if isinstance(device, str) else device
    if not isinstance(device, _native.device) or device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return -1 if device.index is None else device.index


def init():
    """Start the backend; usually the first use does."""
    require()


def current_device():
    """The number of the current device."""
    require()


def set_device(device):
    """Make a device the current one. A negative number changes nothing."""
    if _device_index(device, optional=True) >= 0:
        require()


def synchronize(device=None):
    """Wait for all work on a device."""
    require()


def get_device_name(device=None):
    """The name of a device."""
    require()


def get_device_capability(device=None):
    """The compute capability of a device, as (major, minor)."""
    require()


def get_device_properties(device=None):
    """Name, memory and processors of a device."""
    require()


def can_device_access_peer(device, peer_device):
    """Whether one device reads another's memory directly."""
    require()


def ipc_collect():
    """Free memory that other processes no longer use."""
    require()


def cudart():
    """The runtime library's functions."""
    require()


def current_stream(device=None):
    """The stream that work goes to."""
    require()


def default_stream(device=None):
    """The first stream of a device."""
    require()


def get_stream_from_external(data_ptr, device=None):
    """A stream made by another library."""
    require()


def set_stream(stream):
    """Make a stream the current one; None changes nothing."""
    if stream is not None:
        require()


def current_blas_handle():
    """cuBLAS's handle."""
    require()


def current_solver_handle():
    """cuSOLVER's handle."""
    require()


def get_sync_debug_mode():
    """What happens when an operation waits for the device."""
    require()


def set_sync_debug_mode(debug_mode):
    """Say what happens when an operation waits for the device."""
    require()


def _needs_management_library(name, doc):
    def ask(device=None):
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = doc
    return ask


clock_rate = _needs_management_library("clock_rate", "The clock of a device, in Hz.")
device_memory_used = _needs_management_library("device_memory_used", "The memory of a device that all processes use.")
memory_usage = _needs_management_library("memory_usage", "The share of time in which memory was accessed.")
power_draw = _needs_management_library("power_draw", "The power of a device, in milliwatts.")
temperature = _needs_management_library("temperature", "The temperature of a device, in degrees Celsius.")
utilization = _needs_management_library("utilization", "The share of time in which kernels ran.")


class device:
    """Inside, a device is the current one. A negative number changes nothing.

    >>> with cresset.cuda.device(-1):
    ...     pass
    """

    def __init__(self, device):
        self.idx = _device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            require()

    def __exit__(self, *_):
        return False


class device_of(device):
    """Inside, the device of a tensor or storage is the current one; anything else changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


# ---------------------------------------------------------------- old names of types


class _TensorTypeAbsent(type):
    def __call__(cls, *args, **kwargs):
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. {NOT_COMPILED}.")

    def __instancecheck__(cls, instance):
        return isinstance(instance, _native.Tensor) and instance.is_cuda and instance.dtype == cls.dtype


class _StorageTypeAbsent(type):
    def __call__(cls, *args, **kwargs):
        require()


def _add_types():
    from ..storage import STORAGE_TYPES

    for word, kind in STORAGE_TYPES.items():
        attributes = {"dtype": kind.dtype, "is_cuda": True, "__module__": "torch.cuda"}
        globals()[word + "Storage"] = _StorageTypeAbsent(word + "Storage", (), attributes)
        if not word.startswith("Complex"):
            globals()[word + "Tensor"] = _TensorTypeAbsent(word + "Tensor", (), attributes)


_add_types()


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module 'cresset.cuda' has no attribute {name!r}")


__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream", "StreamContext", "amp", "current_device", "current_stream", "default_stream", "device",
    "device_count", "device_of", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "graph", "graphs", "init", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "memory", "memory_allocated", "memory_reserved", "nccl", "nvtx", "profiler", "random",
    "set_device", "set_stream", "stream", "streams", "synchronize",
]  # fmt: skip
