"""torch.autograd.profiler_util: what a recording of the profiler is made of, which lives in cresset.profiler."""

from ..profiler import tables
from ..profiler.events import DeviceType, EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_format_time, _format_time_share, _format_memory = tables.format_time, tables.format_share, tables.format_memory
