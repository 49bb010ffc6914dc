"""What CUDA's devices did, as events beside those of the operators that asked for it."""

from typing import NamedTuple

from .events import DeviceType, FunctionEvent


class Activity(NamedTuple):
    """A kernel, copy or fill of a device, or the call of the driver that asked for it; as
    `_native.cuda.activities_stop` gives them.
    """

    kind: str
    name: str
    start: int  # nanoseconds
    end: int
    device: int
    stream: int
    thread: int  # of a call
    correlation: int  # the same for a call and what it asked for
    event: int  # the operator's, counted from the first recording; or -1
    stack: int  # where only sums are kept; or -1
    bytes: int
    grid: tuple
    block: tuple
    shared_memory: int
    registers: int


def add_activities(events, activities, began, first):
    """Put what the devices did behind the operators' events, and tell each operator of its kernels. `first` is the
    number of the first event.
    """
    operators = len(events)
    calls = {activity.correlation: activity for activity in activities if activity.kind == "call"}
    for activity in activities:
        if activity.kind == "call":
            continue
        event = FunctionEvent(
            len(events) + 1, activity.name, activity.stream, (activity.start - began) / 1000,
            (activity.end - began) / 1000, kind=activity.kind,
            device_type=DeviceType.CUDA, device_index=activity.device,
        )  # fmt: skip
        event.is_async, event.activity, event.call = True, activity, calls.get(activity.correlation)
        event.system_thread, event.stack_number = activity.stream, activity.stack
        number = activity.event - first
        if 0 <= number < operators:
            operator = events[number]
            operator.append_kernel(activity.name, activity.device, event.time_range.elapsed_us())
            event.linked_correlation_id = operator.id
            event.stack_number = operator.stack_number
            event.stack = operator.stack
        events.append(event)
