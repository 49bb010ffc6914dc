"""PyTorch's place for the DataLoader and its iterators."""

from ...data.collate import default_collate, default_convert  # noqa: F401
from ...data.loader import (  # noqa: F401
    DataLoader,
    _BaseDataLoaderIter,
    _DatasetKind,
    _InfiniteConstantSampler,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ...data.workers import get_worker_info  # noqa: F401
