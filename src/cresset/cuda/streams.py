"""Streams and events of CUDA devices."""

import itertools

from .. import _native, accelerator
from .absent import require, require_for
from .devices import current_device, device_index

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]

_native_cuda = _native.cuda

# Streams are made once and given again in turn, as PyTorch does: the allocator keeps memory by stream.
_STREAMS_KEPT = 32
_made, _turns = {}, {}


def _next_stream(index, priority):
    key = index, priority
    streams = _made.setdefault(key, [])
    turn = next(_turns.setdefault(key, itertools.count())) % _STREAMS_KEPT
    if turn == len(streams):
        streams.append(_native_cuda.stream_create(index, priority))
    return streams[turn]


class Stream(accelerator.Stream):
    """A queue of work on a device: what is in one stream happens in order.

    Args:
        device: the current one if it is None.
        priority: a negative number comes first.
        stream_ptr: the address of a stream that somebody else made.
    """

    def __new__(cls, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None, stream_ptr=None):
        require_for("Stream")
        self = object.__new__(cls)
        if isinstance(device, Stream):
            device = device.device
        if device_type not in (None, 1):
            raise ValueError(f"torch.cuda.Stream: device_type is 1, which is CUDA's, got {device_type}")
        index = device_index if device_index is not None else _index(device)
        if stream_ptr is not None or stream_id is not None:
            handle = stream_ptr if stream_ptr is not None else stream_id
        else:
            least, greatest = _native_cuda.stream_priority_range(index)
            handle = _next_stream(index, max(min(priority, least), greatest))
        self.cuda_stream, self.device = handle, _native.device("cuda", index)
        return self

    def __init__(self, *_, **__):
        pass  # __new__ has made it

    @property
    def device_index(self):
        return self.device.index

    @property
    def device_type(self):
        return 1

    @property
    def stream_id(self):
        return self.cuda_stream

    @property
    def priority(self):
        return _native_cuda.stream_priority(self.device.index, self.cuda_stream)

    @property
    def _as_parameter_(self):
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    def wait_event(self, event):
        """Let later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream):
        """Let later work wait for what another stream has now."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """An event after the work up to now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self):
        """Whether all work is done."""
        return _native_cuda.stream_query(self.device.index, self.cuda_stream)

    def synchronize(self):
        """Wait for all work, and raise what went wrong in it (a bad index, say)."""
        _native_cuda.stream_synchronize(self.device.index, self.cuda_stream)

    def __enter__(self):
        self._around = StreamContext(self)
        self._around.__enter__()
        return self

    def __exit__(self, *exception):
        return self._around.__exit__(*exception)

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.cuda_stream, self.device) == (other.cuda_stream, other.device)

    def __hash__(self):
        return hash((self.cuda_stream, self.device))

    def __cuda_stream__(self):
        return 0, self.cuda_stream

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream made by another library, which keeps it."""

    def __new__(cls, stream_ptr, device=None, **kwargs):
        return super().__new__(cls, device, stream_ptr=stream_ptr, **kwargs)


class Event(accelerator.Event):
    """A point in a stream's work.

    Args:
        enable_timing: whether elapsed_time can be asked.
        blocking: whether synchronize sleeps instead of looking again and again.
        interprocess: for other processes; not supported.
    """

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        require_for("Event")
        if interprocess or external:
            raise NotImplementedError(
                f"torch.cuda.Event: {'interprocess' if interprocess else 'external'}=True is not supported"
            )
        self = object.__new__(cls)
        self.enable_timing, self.blocking, self.cuda_event, self._index = enable_timing, blocking, 0, None
        return self

    def __init__(self, *_, **__):
        pass  # __new__ has made it

    @property
    def event_id(self):
        return self.cuda_event

    @property
    def _as_parameter_(self):
        import ctypes

        return ctypes.c_void_p(self.cuda_event)

    @property
    def device(self):
        return None if self._index is None else _native.device("cuda", self._index)

    def record(self, stream=None):
        """Mark the point after the work that a stream, or the current one, has up to now."""
        if stream is None:
            index = _native_cuda.current_device()
            handle = _native_cuda.current_stream(index)
        else:
            index, handle = stream.device.index, stream.cuda_stream
        if self._index is None:
            self.cuda_event = _native_cuda.event_create(index, self.enable_timing, self.blocking)
            self._index = index
        elif self._index != index:
            raise RuntimeError(
                f"Event device cuda:{self._index} does not match recording stream's device cuda:{index}."
            )
        _native_cuda.event_record(index, self.cuda_event, handle)

    def wait(self, stream=None):
        """Let a stream's later work wait for the point."""
        if self._index is not None:
            stream = current_stream() if stream is None else stream
            _native_cuda.stream_wait_event(stream.device.index, stream.cuda_stream, self.cuda_event)

    def query(self):
        """Whether the point was reached."""
        return self._index is None or _native_cuda.event_query(self._index, self.cuda_event)

    def elapsed_time(self, end_event):
        """Milliseconds from this point to another."""
        if self._index is None or end_event._index is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return _native_cuda.event_elapsed(self._index, self.cuda_event, end_event.cuda_event)

    def synchronize(self):
        """Wait until the point is reached."""
        if self._index is not None:
            _native_cuda.event_synchronize(self._index, self.cuda_event)

    def ipc_handle(self):
        """A handle for other processes; not supported."""
        raise NotImplementedError("torch.cuda.Event.ipc_handle is not supported")

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event behind another process's handle; not supported."""
        raise NotImplementedError("torch.cuda.Event.from_ipc_handle is not supported")

    def __del__(self):
        if getattr(self, "_index", None) is not None:
            _native_cuda.event_destroy(self._index, self.cuda_event)

    def __repr__(self):
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self._index is not None
            else "<torch.cuda.Event uninitialized>"
        )


def _index(device):
    return current_device() if device is None else device_index(device)


def current_stream(device=None):
    """The stream that work goes to."""
    require()
    index = _index(device)
    return Stream(device_index=index, stream_ptr=_native_cuda.current_stream(index))


def default_stream(device=None):
    """The first stream of a device."""
    require()
    return Stream(device_index=_index(device), stream_ptr=0)


def get_stream_from_external(data_ptr, device=None):
    """A stream made by another library, which keeps it."""
    require()
    return ExternalStream(data_ptr, device)


def set_stream(stream):
    """Make a stream the current one of its device, and its device the current device; None changes nothing."""
    if stream is not None:
        require()
        _native_cuda.set_device(stream.device.index)
        _native_cuda.set_stream(stream.device.index, stream.cuda_stream)


class StreamContext:
    """Inside, work goes to a stream, and its device is the current one; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            require()
            self._device, index = current_device(), self.stream.device.index
            self._before = _native_cuda.current_stream(index)
            set_stream(self.stream)

    def __exit__(self, *_):
        if self.stream is not None:
            _native_cuda.set_stream(self.stream.device.index, self._before)
            _native_cuda.set_device(self._device)
        return False


def stream(stream):
    """Inside, work goes to `stream`; None changes nothing.

    >>> with cresset.cuda.stream(None):
    ...     pass
    """
    return StreamContext(stream)
