"""torch.distributed.elastic.multiprocessing: where programs find `errors.record`, and what becomes of what processes
print."""

from .api import DefaultLogsSpecs, LogsSpecs, SignalException, Std

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "SignalException", "Std"]
