"""The iterator of a DataLoader as PyTorch's protocol has it: what packages derive iterators of their own from
(torchdata's stateful loader). Those in loader.py are of this class, too, and bring their own way of sharing out the
work.
"""

import warnings

import cresset

from .pipes import IterDataPipe
from .pipes.loading import among_processes, seed_of_epoch, shuffled_by
from .samplers import drawn_seed

__all__ = ["_BaseDataLoaderIter"]


class _BaseDataLoaderIter:
    """The order, the seed of the epoch, the count of what was given. A subclass writes `_next_data`."""

    def __init__(self, loader):
        self._take_settings(loader)
        warn_of_no_accelerator(loader)
        self._start(loader)
        self._base_seed = drawn_seed(loader.generator)
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def _take_settings(self, loader):
        """What an iterator needs to know of its loader, which it does not hold: that one holds the iterator."""
        self._world_size, self._rank = among_processes()
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._auto_collation, self._collate_fn = loader._auto_collation, loader.collate_fn
        self._index_sampler, self._drop_last = loader._index_sampler, loader.drop_last
        self._num_workers, self._persistent_workers = loader.num_workers, loader.persistent_workers
        self._timeout, self._pg = loader.timeout, None
        self._pin_memory = loader.pin_memory and cresset.accelerator.is_available()
        self._pin_memory_device = cresset.accelerator.current_accelerator().type if self._pin_memory else None

    def _start(self, loader):
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._shared_seed = None
        if isinstance(self._dataset, IterDataPipe):
            self._shared_seed = seed_of_epoch(loader.generator)
            shuffled_by(self._dataset, self._shared_seed)

    def _reset(self, loader, first_iter=False):
        """The next epoch."""
        self._start(loader)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError(f"{type(self).__name__}: an iterator of a DataLoader needs a method _next_data()")

    def __next__(self):
        with cresset.autograd.profiler.record_function(self._profile_name):
            if self._sampler_iter is None:
                self._reset(None)
            data = self._next_data()
        self._count_one()
        return data

    def _count_one(self):
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if expected is not None and self._num_yielded > expected:
            warn_of_length(self._dataset, expected, self._num_yielded)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


def warn_of_no_accelerator(loader):
    """Pinned memory was asked for, and there is no device that could use it."""
    if loader.pin_memory and not cresset.accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory "
            "won't be used.",
            stacklevel=5,
        )


def warn_of_length(dataset, expected, given):
    """A stream gave more than it said it would."""
    warnings.warn(
        f"Length of IterableDataset {dataset} was reported to be {expected} (when accessing len(dataloader)), "
        f"but {given} samples have been fetched. For multiprocessing data-loading, this is what comes of workers that "
        "each iterate over the whole stream instead of taking a share: see get_worker_info.",
        stacklevel=5,
    )
