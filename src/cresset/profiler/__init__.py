"""The profiler: what ran, how long it took, and how much memory it wanted.

with profile(activities=[ProfilerActivity.CPU]) as prof: ...; print(prof.key_averages().table(sort_by="cpu_time_total"))
Operators, the nodes of backward passes and ranges of record_function are recorded natively; nothing is paid while
nobody records.
"""

from .events import DeviceType, EventList, FunctionEvent, FunctionEventAvg
from .ranges import record_function
from .recording import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
