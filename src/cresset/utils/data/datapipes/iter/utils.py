"""PyTorch's place for some streams."""

from .....data.pipes.each import IterableWrapperIterDataPipe  # noqa: F401
