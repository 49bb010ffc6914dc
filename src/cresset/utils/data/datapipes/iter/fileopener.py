"""PyTorch's place for some streams."""

from .....data.pipes.files import FileOpenerIterDataPipe  # noqa: F401
