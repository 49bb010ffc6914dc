"""PyTorch's place for some pipes with keys."""

from .....data.pipes.keyed import ConcaterMapDataPipe, ZipperMapDataPipe  # noqa: F401
