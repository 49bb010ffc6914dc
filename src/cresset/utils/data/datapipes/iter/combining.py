"""PyTorch's place for streams made of several, and for branches."""

from .....data.pipes.branches import DemultiplexerIterDataPipe, ForkerIterDataPipe, _ChildDataPipe  # noqa: F401
from .....data.pipes.joins import ConcaterIterDataPipe, MultiplexerIterDataPipe, ZipperIterDataPipe  # noqa: F401
