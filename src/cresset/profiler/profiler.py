"""torch.profiler.profiler: where PyTorch keeps the profiler's classes."""

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
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def _default_schedule_fn(_step):
    """The schedule of a profiler that was given none: record every step."""
    return ProfilerAction.RECORD
