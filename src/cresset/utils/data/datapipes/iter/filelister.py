"""PyTorch's place for some streams."""

from .....data.pipes.files import FileListerIterDataPipe  # noqa: F401
