"""PyTorch's place for some streams."""

from .....data.pipes.each import CollatorIterDataPipe, MapperIterDataPipe  # noqa: F401
