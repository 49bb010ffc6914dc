"""PyTorch's place for some pipes with keys."""

from .....data.pipes.keyed import MapperMapDataPipe, default_fn  # noqa: F401
