"""Settings of PyTorch's tracing library. The recorder is our own: see docs/ignored_arguments.md."""

import dataclasses

from ..profiler.recording import ProfilerActivity

__all__ = ["ProfilerActivity"]


@dataclasses.dataclass
class _ExperimentalConfig:
    """What `profile(experimental_config=)` takes. Call stacks, which `verbose` asks for, are always in the traces."""

    profiler_metrics: list = dataclasses.field(default_factory=list)
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: list = dataclasses.field(default_factory=list)
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False
