"""PyTorch's short names of the pipes with keys."""

from .....data.pipes.keyed import (
    BatcherMapDataPipe as Batcher,
)
from .....data.pipes.keyed import (
    ConcaterMapDataPipe as Concater,
)
from .....data.pipes.keyed import (
    MapperMapDataPipe as Mapper,
)
from .....data.pipes.keyed import (
    SequenceWrapperMapDataPipe as SequenceWrapper,
)
from .....data.pipes.keyed import (
    ShufflerIterDataPipe as Shuffler,
)
from .....data.pipes.keyed import (
    ZipperMapDataPipe as Zipper,
)
from . import callable, combinatorics, combining, grouping, utils  # noqa: F401

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
