"""torch.distributed.pipelining: a model in stages, one or several in each process; microbatches go through them one
after the other, and their gradients come back."""

from .schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    _ScheduleForwardOnly,  # noqa: F401
)
from .splitting import Pipe, SplitPoint, pipe_split, pipeline
from .stage import PipelineStage, build_stage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]
