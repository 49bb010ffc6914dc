"""PyTorch's place for worker information."""

from ....data.workers import WorkerInfo, get_worker_info  # noqa: F401


def __getattr__(name):
    if name == "_worker_info":
        return get_worker_info()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
