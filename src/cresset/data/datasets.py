"""Datasets: what can be asked for sample `i`, or iterated over, and the ways to combine and split them."""

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, Protocol, TypeVar

import cresset
from cresset import Tensor

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Samples(Protocol[T_co]):
    """For type checkers: what a loader takes. A Dataset, a list, whatever answers `samples[index]`."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class SizedSamples(Samples[T_co], Sized, Protocol[T_co]):
    """For type checkers: samples that can be counted."""


class Dataset(Generic[T_co]):
    """A collection that gives sample `index`: subclasses write `__getitem__` and mostly `__len__`.

    A dataset that can fetch many samples at once quicker than one by one may have `__getitems__(indices)` as well,
    which returns the list of samples.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> list(cresset.utils.data.DataLoader(Squares(), batch_size=4))
    [tensor([0, 1, 4, 9])]
    """

    def __getitem__(self, index) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}: a dataset needs a method __getitem__(index)")

    def __add__(self, other: "Dataset[T_co]") -> "ConcatDataset[T_co]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A stream of samples: subclasses write `__iter__`. With several workers each has a copy: `get_worker_info` says
    which share is its own.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: an iterable dataset needs a method __iter__()")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is (tensor[i] for each tensor).

    >>> TensorDataset(cresset.arange(3), cresset.arange(3) * 10)[2]
    (tensor(2), tensor(20))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError(
                f"Size mismatch between tensors: they have {[tensor.size(0) for tensor in tensors]} rows"
            )
        self.tensors = tensors

    def __getitem__(self, index) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Sample i is the tuple, or with keywords the dict, of sample i of each dataset."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("StackDataset: At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in (args or kwargs.values())]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        if isinstance(self.datasets, dict):
            columns = {name: _several(dataset, indices) for name, dataset in self.datasets.items()}
            return [{name: column[k] for name, column in columns.items()} for k in range(len(indices))]
        return list(zip(*(_several(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self):
        return self._length


def _several(dataset, indices):
    if callable(getattr(dataset, "__getitems__", None)):
        samples = dataset.__getitems__(indices)
        if len(samples) != len(indices):
            raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}")
        return samples
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[T_co]):
    """One dataset after the other.

    >>> ConcatDataset([range(3), range(10, 12)])[4]
    11
    """

    @staticmethod
    def cumsum(sequence):
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Samples[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError(f"absolute value of index should not exceed dataset length: {index} of {len(self)}")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self):
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """One stream after the other."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset, got {type(dataset).__name__}")
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`.

    >>> Subset(range(10, 20), [1, 5])[1]
    15
    """

    def __init__(self, dataset: Samples[T_co], indices: Sequence[int]) -> None:
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__, by which batches are read; override both"
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        return _several(self.dataset, [self.indices[index] for index in indices])

    def __len__(self):
        return len(self.indices)


def random_split(dataset: SizedSamples[T], lengths: Sequence[int | float], generator=None) -> list[Subset[T]]:
    """Split into random subsets without overlap, of the given lengths, or of the given fractions that sum to one.

    >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
    if lengths and math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        whole = [math.floor(len(dataset) * fraction) for fraction in lengths]
        for i in range(len(dataset) - sum(whole)):  # what rounding down left over goes round
            whole[i % len(whole)] += 1
        lengths = whole
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != len(dataset):
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset! {sum(lengths)} and {len(dataset)}"
        )
    indices = cresset.randperm(sum(lengths), generator=generator).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, indices[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def is_pure(dataset):
    """Whether fetching from it runs no user's code, and so draws no random numbers."""
    kind = type(dataset)
    if kind is Subset:
        return is_pure(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(is_pure, dataset.datasets))
    if kind is StackDataset:
        return all(map(is_pure, dataset.datasets.values() if isinstance(dataset.datasets, dict) else dataset.datasets))
    return kind in (TensorDataset, list, tuple, range, cresset.Tensor)
