"""PyTorch's short names of the streams."""

from .....data.pipes.branches import DemultiplexerIterDataPipe as Demultiplexer
from .....data.pipes.branches import ForkerIterDataPipe as Forker
from .....data.pipes.each import (
    CollatorIterDataPipe as Collator,
)
from .....data.pipes.each import (
    FilterIterDataPipe as Filter,
)
from .....data.pipes.each import (
    IterableWrapperIterDataPipe as IterableWrapper,
)
from .....data.pipes.each import (
    MapperIterDataPipe as Mapper,
)
from .....data.pipes.files import (
    FileListerIterDataPipe as FileLister,
)
from .....data.pipes.files import (
    FileOpenerIterDataPipe as FileOpener,
)
from .....data.pipes.files import (
    StreamReaderIterDataPipe as StreamReader,
)
from .....data.pipes.groups import (
    BatcherIterDataPipe as Batcher,
)
from .....data.pipes.groups import (
    GrouperIterDataPipe as Grouper,
)
from .....data.pipes.groups import (
    UnBatcherIterDataPipe as UnBatcher,
)
from .....data.pipes.joins import (
    ConcaterIterDataPipe as Concater,
)
from .....data.pipes.joins import (
    MultiplexerIterDataPipe as Multiplexer,
)
from .....data.pipes.joins import (
    ZipperIterDataPipe as Zipper,
)
from .....data.pipes.order import SamplerIterDataPipe as Sampler
from .....data.pipes.order import ShufflerIterDataPipe as Shuffler
from .....data.pipes.shares import ShardingFilterIterDataPipe as ShardingFilter
from . import (  # noqa: F401
    callable,
    combinatorics,
    combining,
    filelister,
    fileopener,
    grouping,
    selecting,
    sharding,
    streamreader,
    utils,
)

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]
