"""PyTorch's torch.accelerator: the accelerator of this machine, whichever it is."""

from . import _native

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_memory_info",
    "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def _module():
    """The module of the accelerator; an error if there is none."""
    from . import cuda

    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return cuda


def is_available():
    """Whether there is an accelerator that can be used."""
    from . import cuda

    return cuda.is_available()


def device_count():
    """How many accelerators there are."""
    from . import cuda

    return cuda.device_count()


def current_accelerator(check_available=False):
    """The accelerator as a device without a number; None if there is none.

    >>> cresset.accelerator.current_accelerator() is None
    True
    """
    return _native.device("cuda") if is_available() else None


def current_device_index():
    """The number of the current accelerator."""
    return _module().current_device()


def set_device_index(device):
    """Make an accelerator the current one."""
    _module().set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device=None):
    """The stream that work goes to."""
    return _module().current_stream(device)


def set_stream(stream):
    """Make a stream the current one."""
    _module().set_stream(stream)


def synchronize(device=None):
    """Wait for all work on an accelerator."""
    _module().synchronize(device)


def get_device_capability(device=None):
    """What an accelerator can do."""
    return _module().get_device_capability(device)


def empty_cache():
    """Give cached memory back to the accelerator."""
    _module().empty_cache()


def empty_host_cache():
    """Give cached pinned memory back to the system."""
    _module()
    _native.empty_host_cache()


def get_memory_info(device_index=None):
    """(free bytes, all bytes) of an accelerator."""
    return _module().mem_get_info(device_index)


def memory_allocated(device_index=None):
    """Bytes that tensors use."""
    return _module().memory_allocated(device_index)


def max_memory_allocated(device_index=None):
    """The most bytes that tensors used at a time."""
    return _module().max_memory_allocated(device_index)


def memory_reserved(device_index=None):
    """Bytes that the allocator holds."""
    return _module().memory_reserved(device_index)


def max_memory_reserved(device_index=None):
    """The most bytes that the allocator held at a time."""
    return _module().max_memory_reserved(device_index)


def memory_stats(device_index=None):
    """All figures of memory, by name."""
    return _module().memory_stats(device_index)


def reset_accumulated_memory_stats(device_index=None):
    """Start the sums anew."""
    _module().reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None):
    """Start the maxima anew."""
    _module().reset_peak_memory_stats(device_index)


class device_index:
    """Inside, the accelerator with this number is the current one; None changes nothing.

    >>> with cresset.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *_):
        if self.idx is not None:
            set_device_index(self.prev_idx)
        return False


# ---------------------------------------------------------------- streams and modules of any device


def _on_accelerator(device):
    """Whether a device, or the one that None means, is an accelerator that is there."""
    return is_available() and (device is None or isinstance(device, int) or _native.device(device).type == "cuda")


class Stream:
    """A queue of work on a device. On the CPU work is complete when it returns, so its one stream is always idle.

    >>> cresset.Stream("cpu").query()
    True
    """

    def __new__(cls, device=None, *, priority=0, **more):
        if cls is Stream and _on_accelerator(device):
            from .cuda import Stream as OfDevice

            return OfDevice(device, priority, **more)
        return super().__new__(cls)

    def __init__(self, device=None, *, priority=0):
        self.device = _native.device(device or current_accelerator() or "cpu")
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.stream_id, self.device_index, self.device_type = 0, -1, 0

    def query(self):
        """Whether all work is done."""
        return True

    def synchronize(self):
        """Wait for all work."""

    def wait_event(self, event):
        """Let later work wait for an event."""

    def wait_stream(self, stream):
        """Let later work wait for what another stream has now."""

    def record_event(self, event=None):
        """An event after the work up to now."""
        raise RuntimeError("cpu backend doesn't support events.")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self):
        return hash((self.device, self.stream_id))

    def __repr__(self):
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A point in a stream's work. The CPU has none to mark."""

    def __new__(cls, device=None, *, enable_timing=False, blocking=False, interprocess=False, **more):
        if cls is Event and _on_accelerator(device):
            from .cuda import Event as OfDevice

            return OfDevice(enable_timing, blocking, interprocess, **more)
        return super().__new__(cls)

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device = _native.device(device or current_accelerator() or "cpu")
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.enable_timing, self.event_id = enable_timing, 0

    def record(self, stream=None):
        """Mark the point after the work up to now."""
        raise RuntimeError("cpu backend doesn't support events.")

    def query(self):
        """Whether the point was reached."""
        return True

    def wait(self, stream=None):
        """Let a stream's later work wait for the point."""

    def synchronize(self):
        """Wait until the point is reached."""

    def elapsed_time(self, end_event):
        """Milliseconds from this point to another."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self):
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id={self.event_id}"


def get_device_module(device=None):
    """The module of a device's type: cresset.cuda for "cuda:1"; of the accelerator, or the CPU, for None.

    >>> cresset.get_device_module("cpu") is cresset.cpu
    True
    """
    import importlib

    if isinstance(device, str):
        device = _native.device(device)
    if isinstance(device, _native.device):
        name = device.type
    elif device is None:
        found = current_accelerator()
        name = found.type if found else "cpu"
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    try:
        return importlib.import_module("." + name, __package__)
    except ImportError:
        raise RuntimeError(
            f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'."
        ) from None
