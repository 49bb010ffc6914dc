"""torch.monitor: events that a program logs, the handlers that see them, and statistics of intervals."""

import contextlib
import enum
import threading
import time
from dataclasses import dataclass
from datetime import datetime

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"

_handlers: list = []  # EventHandlerHandle, in the order in which they were registered


class Aggregation(enum.Enum):
    """What a Stat makes of the values of an interval, with PyTorch's numbers. VALUE is the last one."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


globals().update(Aggregation.__members__)


@dataclass(eq=False)
class Event:
    """Something that happened.

    Args:
        name: of what kind it is.
        timestamp: a datetime.
        data: texts and numbers by name.
    """

    name: str
    timestamp: datetime
    data: dict

    def __post_init__(self):
        if not isinstance(self.name, str) or not isinstance(self.timestamp, datetime):
            raise TypeError(f"Event: expected a name and a datetime, got {self.name!r} and {self.timestamp!r}")
        for key, value in dict(self.data).items():
            if not isinstance(key, str) or not isinstance(value, (str, int, float)):
                raise TypeError(f"Event: data has texts and numbers by name, got {key!r}: {value!r}")


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, handler):
        self.handler = handler


def register_event_handler(callback):
    """Call callback(event) for each event from now on; gives the handle to end that.

    >>> from datetime import datetime
    >>> seen = []
    >>> handle = cresset.monitor.register_event_handler(lambda event: seen.append(event.data))
    >>> cresset.monitor.log_event(cresset.monitor.Event("step", datetime.now(), {"loss": 0.5}))
    >>> cresset.monitor.unregister_event_handler(handle)
    >>> seen
    [{'loss': 0.5}]
    """
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """Call the handler no more; one that is gone already is no mistake."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event):
    """Give an event to all handlers."""
    for handle in tuple(_handlers):
        handle.handler(event)


class Stat:
    """Sums up values, and logs what they come to as an event when an interval is over.

    Args:
        name: the event's data are named `<name>.<aggregation>`.
        aggregations: what is made of the values.
        window_size: a timedelta, how long an interval is. It ends with the first `add` after it.
        max_samples: an interval takes no more values, and is logged with the last of them.

    >>> from datetime import timedelta
    >>> Aggregation = cresset.monitor.Aggregation
    >>> stat = cresset.monitor.Stat("loss", (Aggregation.SUM, Aggregation.COUNT), timedelta(hours=1), max_samples=2)
    >>> stat.add(1.0)
    >>> stat.add(2.0)
    >>> stat.get()
    {<Aggregation.SUM: 4>: 3.0, <Aggregation.COUNT: 3>: 2.0}
    """

    def __init__(self, name, aggregations, window_size, max_samples=2**63 - 1):
        self.name, self._aggregations = name, tuple(Aggregation(a) for a in aggregations)
        self._seconds, self._most = window_size.total_seconds(), max_samples
        self._lock, self._last = threading.Lock(), dict.fromkeys(self._aggregations, 0.0)
        self._begin()

    def _begin(self):
        self._began, self._values, self._is_logged = time.monotonic(), [], False

    @property
    def count(self):
        """How many values of the interval are not logged yet."""
        return len(self._values)

    def add(self, v):
        """Take a value. Those beyond `max_samples` of an interval are dropped."""
        value, events = float(v), []
        with self._lock:
            if time.monotonic() - self._began >= self._seconds:
                events += self._close()
                self._begin()
            if not self._is_logged:
                self._values.append(value)
                if len(self._values) >= self._most:
                    events += self._close()
        for event in events:  # handlers may ask the Stat
            log_event(event)

    def _close(self):
        """The event of the values so far, as a list; empty if there are none."""
        values, self._values, self._is_logged = self._values, [], True
        if not values:
            return []
        found = {
            Aggregation.VALUE: values[-1],
            Aggregation.MEAN: sum(values) / len(values),
            Aggregation.COUNT: float(len(values)),
            Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values),
            Aggregation.MIN: min(values),
        }
        self._last = {aggregation: found[aggregation] for aggregation in self._aggregations}
        data = {f"{self.name}.{aggregation.name.lower()}": value for aggregation, value in self._last.items()}
        return [Event(STAT_EVENT, datetime.now(), data)]

    def get(self):
        """What the last interval came to, by aggregation; zeros before one is over."""
        return dict(self._last)

    def __del__(self):
        for event in self._close() if hasattr(self, "_values") else ():
            log_event(event)


class TensorboardEventHandler:
    """A handler that writes the numbers of each Stat as scalars.

    Args:
        writer: a `torch.utils.tensorboard.SummaryWriter`.
    """

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """PyTorch's counter of waiting, which goes to a service of its own: here nobody reads it."""

    def __init__(self, name):
        self.name = name

    def guard(self):
        """A context in which the program waits."""
        return contextlib.nullcontext()
