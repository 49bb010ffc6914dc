"""Fetching one batch from a dataset, the same way in this process and in a worker."""

import cresset

from . import seeding
from .collate import default_collate
from .datasets import Subset, TensorDataset, is_pure


class MapFetcher:
    """Batches of a dataset that answers `dataset[index]`."""

    def __init__(self, dataset, auto_collation, collate_fn, _drop_last):
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn
        self.draws = not is_pure(dataset)
        self.several = getattr(dataset, "__getitems__", None) if auto_collation else None
        self.whole_rows = auto_collation and collate_fn is default_collate and _rows_of(dataset) is not None

    def fetch(self, indices, epoch_seed=None, place=0, working_on=None):
        """The batch at `indices`; `place` is where its first sample stands in the epoch. Without the seed of an epoch
        the samples draw from the generators as they are: packages that bring a loader of their own call it so.
        """
        if self.whole_rows:
            return _take_rows(self.dataset, indices)
        if not self.auto_collation:
            return self.collate_fn(self._one(indices, epoch_seed, place, working_on))
        if self.several is not None:
            if self.draws and epoch_seed is not None:
                seeding.seed_all(seeding.sample_seed(epoch_seed, place))
            if working_on is not None and indices:
                working_on(place, indices[0])
            return self.collate_fn(self.several(indices))
        return self.collate_fn([self._one(index, epoch_seed, place + k, working_on) for k, index in enumerate(indices)])

    def _one(self, index, epoch_seed, place, working_on):
        if working_on is not None:
            working_on(place, index)
        if self.draws and epoch_seed is not None:
            seeding.seed_all(seeding.sample_seed(epoch_seed, place))
        return self.dataset[index]


class IterableFetcher:
    """Batches of a stream; raises StopIteration at its end."""

    draws = False

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.dataset_iter = dataset, iter(dataset)
        self.auto_collation, self.collate_fn, self.drop_last, self.ended = auto_collation, collate_fn, drop_last, False

    def fetch(self, indices, _epoch_seed=None, place=0, working_on=None):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for k in range(len(indices)):
            if working_on is not None:
                working_on(place + k, place + k)
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return self.collate_fn(samples)


def _rows_of(dataset):
    """The tensors of a TensorDataset, or of a Subset of one, that plain indexing can take rows from."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not dataset.tensors:
        return None
    plain = all(type(t) is cresset.Tensor and not t.requires_grad and t.device.type == "cpu" for t in dataset.tensors)
    return dataset.tensors if plain else None


def _take_rows(dataset, indices):
    """What collating the rows one by one gives, taken at once."""
    while type(dataset) is Subset:
        indices = [dataset.indices[index] for index in indices]
        dataset = dataset.dataset
    rows = cresset.tensor(indices)
    return [tensor[rows] for tensor in dataset.tensors]
