"""Samplers: in which order a dataset is visited. The numbers are PyTorch's for the same seed."""

import itertools
import math
from collections.abc import Iterator
from typing import Generic, TypeVar

import cresset

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An order of indices: subclasses write `__iter__`, and `__len__` if they know it."""

    def __init__(self, data_source=None):
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: a sampler needs a method __iter__()")


def _check_count(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be a boolean value, but got {name}={value}")


def drawn_seed(generator=None):
    """A seed from the global generator, or from `generator`."""
    return int(cresset.empty((), dtype=cresset.int64).random_(generator=generator).item())


class SequentialSampler(Sampler[int]):
    """0, 1, 2, …"""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A new random order at each iteration; with `replacement` each index is drawn by itself."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        _check_flag("replacement", replacement)
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        length, count = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = cresset.Generator().manual_seed(drawn_seed())
        if self.replacement:
            for _ in range(count // 32):
                yield from cresset.randint(length, (32,), dtype=cresset.int64, generator=generator).tolist()
            yield from cresset.randint(length, (count % 32,), dtype=cresset.int64, generator=generator).tolist()
        elif length:
            for _ in range(count // length):
                yield from cresset.randperm(length, generator=generator).tolist()
            yield from cresset.randperm(length, generator=generator).tolist()[: count % length]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """`indices` in a new random order at each iteration."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in cresset.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, each with the probability that its weight has in the sum."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _check_count("num_samples", num_samples)
        _check_flag("replacement", replacement)
        weights = cresset.as_tensor(weights, dtype=cresset.float64)
        if weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(weights.shape)}")
        self.weights, self.num_samples, self.replacement, self.generator = weights, num_samples, replacement, generator

    def __iter__(self):
        yield from iter(
            cresset.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()
        )

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last one is shorter, or left out with `drop_last`.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        _check_count("batch_size", batch_size)
        _check_flag("drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + bool(rest and not self.drop_last)


class DistributedSampler(Sampler[int]):
    """The share of process `rank` among `num_replicas`: every so-manieth index of an order that all have in common.

    Call `set_epoch` before each epoch, or every epoch has the same order.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            distributed = getattr(cresset, "distributed", None)
            if distributed is None or not distributed.is_available():
                raise RuntimeError("DistributedSampler: give num_replicas and rank; there is no process group to ask")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        length = len(dataset)
        whole = length // num_replicas
        self.num_samples = whole if drop_last else math.ceil(length / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            generator = cresset.Generator().manual_seed(self.seed + self.epoch)
            indices = cresset.randperm(len(self.dataset), generator=generator).tolist()
        if self.drop_last:
            indices = indices[: self.total_size]
        elif indices:  # evened out with indices from the start
            indices = list(itertools.islice(itertools.cycle(indices), self.total_size))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Choose the order of this epoch."""
        self.epoch = epoch
