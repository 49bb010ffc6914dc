"""PyTorch's place for the classes of pipes."""

from ....data.pipes.groups import DataChunk  # noqa: F401
from ....data.pipes.pipe import IterDataPipe, MapDataPipe  # noqa: F401
from ....data.pipes.wrapper import (  # noqa: F401
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
