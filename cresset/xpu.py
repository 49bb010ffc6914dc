"""PyTorch's torch.xpu, for Intel's GPUs, on a machine without one: no devices, no memory in use, and an error for the rest."""

import collections

from . import _native

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device", "device_count", "device_of", "empty_cache", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init", "initial_seed", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip

default_generators = ()


def _require():
    raise AssertionError("Torch not compiled with XPU enabled")


def is_available():
    """Whether there is such a device.

    >>> cresset.xpu.is_available()
    False
    """
    return False


def device_count():
    """How many devices there are."""
    return 0


def is_initialized():
    """Whether the backend was used already."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16."""
    return False


def get_arch_list():
    """The architectures that kernels were compiled for."""
    return []


def empty_cache():
    """Give cached memory back to the device."""


def manual_seed(seed):
    """Start the current device's random numbers from a seed. Without a device nothing happens."""
    int(seed)


def manual_seed_all(seed):
    """Start all devices' random numbers from a seed. Without a device nothing happens."""
    int(seed)


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


def _answers(name, doc, answer):
    def function(*args, **kwargs):
        return answer()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


memory_allocated = _answers("memory_allocated", "Bytes that tensors use.", lambda: 0)
max_memory_allocated = _answers("max_memory_allocated", "The most bytes that tensors used at a time.", lambda: 0)
memory_reserved = _answers("memory_reserved", "Bytes that the allocator holds.", lambda: 0)
max_memory_reserved = _answers("max_memory_reserved", "The most bytes that the allocator held at a time.", lambda: 0)
reset_peak_memory_stats = _answers("reset_peak_memory_stats", "Start the maxima anew.", lambda: None)
reset_accumulated_memory_stats = _answers("reset_accumulated_memory_stats", "Start the sums anew.", lambda: None)
current_device = _answers("current_device", "The number of the current device.", _require)
current_stream = _answers("current_stream", "The stream that work goes to.", _require)
get_device_capability = _answers("get_device_capability", "What a device can do.", _require)
get_device_name = _answers("get_device_name", "The name of a device.", _require)
get_device_properties = _answers("get_device_properties", "What a device is.", _require)
get_rng_state = _answers("get_rng_state", "The state of a device's random numbers.", _require)
init = _answers("init", "Start the backend.", _require)
initial_seed = _answers("initial_seed", "The seed from which the random numbers started.", _require)
mem_get_info = _answers("mem_get_info", "(free bytes, all bytes) of a device.", _require)
set_device = _answers("set_device", "Make a device the current one.", _require)
synchronize = _answers("synchronize", "Wait for all work on a device.", _require)


class Stream:
    """A queue of work on a device."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("torch.xpu.Stream requires XPU support, which this build does not have")

    wait_event = wait_stream = record_event = query = synchronize = _answers("work", "Needs a device.", _require)


class Event:
    """A point in a stream's work."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("torch.xpu.Event requires XPU support, which this build does not have")

    record = wait = query = elapsed_time = synchronize = _answers("work", "Needs a device.", _require)


class device:
    """Inside, a device is the current one. A negative number changes nothing."""

    def __init__(self, device):
        self.idx = device if isinstance(device, int) else (_native.device(device).index or 0)

    def __enter__(self):
        if self.idx >= 0:
            _require()

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
            _require()

    def __exit__(self, *_):
        return False


def stream(stream):
    """Inside, work goes to `stream`; None changes nothing."""
    return StreamContext(stream)


def set_stream(stream):
    """Make a stream the current one; None changes nothing."""
    if stream is not None:
        _require()
