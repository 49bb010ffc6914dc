"""PyTorch's place for some streams."""

from .....data.pipes.each import FilterIterDataPipe  # noqa: F401
