"""PyTorch's place for some streams."""

from .....data.pipes.groups import BatcherIterDataPipe, GrouperIterDataPipe, UnBatcherIterDataPipe  # noqa: F401
