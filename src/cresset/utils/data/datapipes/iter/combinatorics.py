"""PyTorch's place for some streams."""

from .....data.pipes.order import SamplerIterDataPipe, ShufflerIterDataPipe  # noqa: F401
