"""PyTorch's torch.cuda. Where there is no device it answers as PyTorch's CPU build does: no devices, no memory in use,
and an error for the rest.
"""

from .. import _native
from . import graphs, memory, nccl, nvtx, profiler, random, streams
from .absent import NOT_COMPILED, require
from .devices import (  # noqa: F401
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_index,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    get_sync_debug_mode,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    set_sync_debug_mode,
    synchronize,
)
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
from .streams import (  # noqa: F401
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

has_half, has_magma = True, False


def cudart():
    """The functions of the CUDA runtime library that programs call: cudaMemGetInfo, cudaProfilerStart, cudaHostRegister
    ... They go through the driver.
    """
    require()
    from . import runtime

    return runtime


def current_blas_handle():
    """cuBLAS's handle; matrix products go through cuBLASLt, which has one of its own."""
    require()
    raise NotImplementedError("current_blas_handle: matrix products go through cuBLASLt")


def current_solver_handle():
    """cuSOLVER's handle, which is not handed out: linear algebra calls that library from the native part alone."""
    require()
    raise NotImplementedError("current_solver_handle: the handle of cuSOLVER is not handed out")


# ---------------------------------------------------------------- old names of types


class _TensorTypeOfDevice(type):
    """The type of torch.cuda.FloatTensor, ...: each makes tensors of its dtype on the current device."""

    def __call__(cls, *args, device=None, **kwargs):
        if not is_available():
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. {NOT_COMPILED}.")
        if len(args) == 1 and isinstance(args[0], _native.Tensor) and not args[0].is_cuda:
            raise TypeError(
                f"torch.cuda.{cls.__name__}: expected a tensor on 'cuda', got one on '{args[0].device}'; use .to()"
            )
        return _native.Tensor._legacy_new(
            *args, dtype=cls.dtype, home=_native.device("cuda", device_index(device)), **kwargs
        )

    def __instancecheck__(cls, instance):
        return isinstance(instance, _native.Tensor) and instance.is_cuda and instance.dtype == cls.dtype


class _StorageTypeOfDevice(type):
    """The type of torch.cuda.FloatStorage, ..."""

    def __call__(cls, *args, device=None, **kwargs):
        require()
        from ..storage import TypedStorage

        return TypedStorage(*args, dtype=cls.dtype, device=_native.device("cuda", device_index(device)), **kwargs)

    def __instancecheck__(cls, instance):
        from ..storage import TypedStorage

        return isinstance(instance, TypedStorage) and instance.is_cuda and instance.dtype == cls.dtype

    def from_buffer(cls, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{cls.__name__}.from_buffer: Not available for CUDA storage; use .cuda()")

    def _not_shared(cls, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{cls.__name__}: Not available for CUDA storage")

    _new_with_weak_ptr = _new_shared_filename = _not_shared


def _add_types():
    from ..storage import STORAGE_TYPES

    for word, kind in STORAGE_TYPES.items():
        attributes = {"dtype": kind.dtype, "is_cuda": True, "__module__": "torch.cuda"}
        globals()[word + "Storage"] = _StorageTypeOfDevice(word + "Storage", (), attributes)
        if not word.startswith("Complex"):
            globals()[word + "Tensor"] = _TensorTypeOfDevice(word + "Tensor", (), attributes)


_add_types()


_OF_MANAGEMENT = frozenset(
    ["clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"]
)


def __getattr__(name):
    if name in _OF_MANAGEMENT:  # imported when one is first asked for
        from . import management

        return getattr(management, name)
    if name in ("amp", "comm"):
        import importlib

        return importlib.import_module("." + name, __name__)
    if name == "default_generators":
        return tuple(_native.cuda.default_generator(number) for number in range(_native.cuda.device_count()))
    raise AttributeError(f"module 'cresset.cuda' has no attribute {name!r}")


__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream", "StreamContext", "amp", "comm",
    "current_device", "current_stream", "default_stream", "device",
    "device_count", "device_of", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties",
    "graph", "graphs", "init", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "memory", "memory_allocated",
    "memory_reserved", "nccl", "nvtx", "profiler", "random",
    "set_device", "set_stream", "stream", "streams", "synchronize",
]  # fmt: skip
