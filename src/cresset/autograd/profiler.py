"""torch.autograd.profiler: the older names of the profiler, which lives in cresset.profiler."""

from ..profiler.events import DeviceType, EventList, FunctionEvent, FunctionEventAvg
from ..profiler.ranges import emit_itt, emit_nvtx, record_function
from ..profiler.recording import ProfilerActivity, kineto_available
from ..profiler.recording import legacy_profile as profile

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerActivity",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]
