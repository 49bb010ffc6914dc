"""PyTorch's torch.xpu, for Intel's GPUs, on a machine without one: no devices, no memory in use, and an error for the
rest.
"""

import collections

from . import _native
from .devices.absent import (
    device_count,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    needs_device,
)  # fmt: skip

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device", "device_count", "device_of",
    "empty_cache", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init",
    "initial_seed", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip

default_generators = ()


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16."""
    return False


def get_arch_list():
    """The architectures that kernels were compiled for."""
    return []


def empty_cache():
    """Give cached memory back to the device."""


def seed():
    """Start the current device's random numbers from the operating system's randomness."""


def seed_all():
    """Start all devices' random numbers from the operating system's randomness."""


def get_rng_state_all():
    """The states of all devices' random numbers."""
    return []


def set_rng_state_all(new_states):
    """Continue all devices' random numbers from states."""


def set_rng_state(new_state, device="xpu"):
    """Continue a device's random numbers from a state."""


def memory_stats(device=None):
    """All figures of memory, by name."""
    return collections.OrderedDict()


def memory_stats_as_nested_dict(device=None):
    """All figures of memory, in nested dictionaries."""
    return {}


def reset_peak_memory_stats(device=None):
    """Start the maxima anew."""


def reset_accumulated_memory_stats(device=None):
    """Start the sums anew."""


_needs_device = needs_device(lambda name: AssertionError("Torch not compiled with XPU enabled"))

current_device = _needs_device("current_device", "The number of the current device.")
current_stream = _needs_device("current_stream", "The stream that work goes to.")
get_device_capability = _needs_device("get_device_capability", "What a device can do.")
get_device_name = _needs_device("get_device_name", "The name of a device.")
get_device_properties = _needs_device("get_device_properties", "What a device is.")
get_rng_state = _needs_device("get_rng_state", "The state of a device's random numbers.")
init = _needs_device("init", "Start the backend.")
initial_seed = _needs_device("initial_seed", "The seed from which the random numbers started.")
mem_get_info = _needs_device("mem_get_info", "(free bytes, all bytes) of a device.")
set_device = _needs_device("set_device", "Make a device the current one.")
synchronize = _needs_device("synchronize", "Wait for all work on a device.")


class Stream:
    """A queue of work on a device."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("torch.xpu.Stream requires XPU support, which this build does not have")

    wait_event = wait_stream = record_event = query = synchronize = _needs_device("work", "Needs a device.")


class Event:
    """A point in a stream's work."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("torch.xpu.Event requires XPU support, which this build does not have")

    record = wait = query = elapsed_time = synchronize = _needs_device("work", "Needs a device.")


class device:
    """Inside, a device is the current one. A negative number changes nothing."""

    def __init__(self, device):
        self.idx = device if isinstance(device, int) else (_native.device(device).index or 0)

    def __enter__(self):
        if self.idx >= 0:
            init()

    def __exit__(self, *_):
        return False


class device_of(device):
    """Inside, the device of a tensor is the current one; of a tensor that is elsewhere, nothing changes."""

    def __init__(self, obj):
        super().__init__(-1)


class StreamContext:
    """Inside, work goes to a stream; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            init()

    def __exit__(self, *_):
        return False


def stream(stream):
    """Inside, work goes to `stream`; None changes nothing."""
    return StreamContext(stream)


def set_stream(stream):
    """Make a stream the current one; None changes nothing."""
    if stream is not None:
        init()
