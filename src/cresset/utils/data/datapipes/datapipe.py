"""PyTorch's place for the classes of pipes."""

from ....data.pipes import (  # noqa: F401
    IterDataPipe,
    MapDataPipe,
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
