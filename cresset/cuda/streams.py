"""Streams and events of CUDA devices."""

from .absent import Absent, require

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "stream"]


class Stream(Absent):
    """A queue of work on a device."""

    def wait_event(self, event):
        """Let later work wait for an event."""
        require()

    def wait_stream(self, stream):
        """Let later work wait for what another stream has now."""
        require()

    def record_event(self, event=None):
        """An event after the work up to now."""
        require()

    def query(self):
        """Whether all work is done."""
        require()

    def synchronize(self):
        """Wait for all work."""
        require()


class ExternalStream(Stream):
    """A stream made by another library."""


class Event(Absent):
    """A point in a stream's work."""

    def record(self, stream=None):
        """Mark the point after the work up to now."""
        require()

    def wait(self, stream=None):
        """Let a stream's later work wait for the point."""
        require()

    def query(self):
        """Whether the point was reached."""
        require()

    def elapsed_time(self, end_event):
        """Milliseconds from this point to another."""
        require()

    def synchronize(self):
        """Wait until the point is reached."""
        require()

    def ipc_handle(self):
        """A handle for other processes."""
        require()

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event behind another process's handle."""
        require()


class StreamContext:
    """Inside, work goes to a stream; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            require()

    def __exit__(self, *_):
        return False


def stream(stream):
    """Inside, work goes to `stream`; None changes nothing.

    >>> with cresset.cuda.stream(None):
    ...     pass
    """
    return StreamContext(stream)
