"""PyTorch's place for some pipes with keys."""

from .....data.pipes.keyed import BatcherMapDataPipe  # noqa: F401
