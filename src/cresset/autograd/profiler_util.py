"""torch.autograd.profiler_util: what a recording of the profiler is made of, which lives in cresset.profiler."""

from ..profiler.events import EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]
