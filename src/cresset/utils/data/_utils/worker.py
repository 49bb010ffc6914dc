"""PyTorch's place for worker information."""

from ....data.workers import WorkerInfo, get_worker_info  # noqa: F401
