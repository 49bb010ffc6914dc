"""PyTorch's place for the DataLoader and its iterators."""

import typing as _typing
from collections.abc import Callable as _Callable

from ...data.collate import default_collate, default_convert  # noqa: F401
from ...data.iterating import _BaseDataLoaderIter  # noqa: F401
from ...data.loader import (  # noqa: F401
    DataLoader,
    _DatasetKind,
    _InfiniteConstantSampler,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ...data.pipes import apply_sharding as _apply_sharding
from ...data.workers import get_worker_info

_worker_init_fn_t = _Callable[[int], None]
_collate_fn_t = _Callable[[list], _typing.Any]


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id):
    """In a worker: give the pipe that it iterates its share, then call the user's function."""
    worker = get_worker_info()
    _apply_sharding(worker.dataset, worker.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)
