"""torch.autograd.profiler: the older names of the profiler, which lives in cresset.profiler."""

from .. import _native
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


def __getattr__(name):
    if name == "_is_profiler_enabled":  # a flag that PyTorch sets and programs read
        return _native.is_profiling()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
