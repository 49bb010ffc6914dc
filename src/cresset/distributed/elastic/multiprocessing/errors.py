"""torch.distributed.elastic.multiprocessing.errors, by PyTorch's path."""

from ..errors import ChildFailedError, ProcessFailure, record

__all__ = ["ChildFailedError", "ProcessFailure", "record"]
