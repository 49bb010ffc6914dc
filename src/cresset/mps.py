"""PyTorch's torch.mps, for Apple's GPUs, on a machine without one."""

from .devices.absent import device_count, is_available, manual_seed, needs_device

__all__ = [
    "Event", "compile_shader", "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache",
    "get_rng_state", "is_available", "manual_seed",
    "recommended_max_memory", "seed", "set_per_process_memory_fraction", "set_rng_state", "synchronize",
]  # fmt: skip


_needs_device = needs_device(lambda name: RuntimeError(f"Cannot execute {name}() without MPS backend."))

compile_shader = _needs_device("compile_shader", "Compile a Metal shader.")
current_allocated_memory = _needs_device("current_allocated_memory", "Bytes that tensors use.")
driver_allocated_memory = _needs_device("driver_allocated_memory", "Bytes that the driver holds.")
recommended_max_memory = _needs_device("recommended_max_memory", "Bytes that should not be exceeded.")
set_per_process_memory_fraction = _needs_device(
    "set_per_process_memory_fraction", "Say which share of the memory this process may use."
)
empty_cache = _needs_device("empty_cache", "Give cached memory back to the device.")
synchronize = _needs_device("synchronize", "Wait for all work.")
seed = _needs_device("seed", "Start the random numbers from the operating system's randomness.")
get_rng_state = _needs_device("get_rng_state", "The state of the random numbers.")
set_rng_state = _needs_device("set_rng_state", "Continue the random numbers from a state.")


class Event:
    """A point in the device's work."""

    def __init__(self, enable_timing=False):
        raise RuntimeError("Cannot execute acquireEvent() without MPS backend.")
