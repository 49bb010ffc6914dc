"""PyTorch's place for some streams."""

from .....data.pipes.files import StreamReaderIterDataPipe  # noqa: F401
