"""Pipes with keys: a sequence as a pipe, map, batch, concat, zip; shuffle makes a stream of one."""

import copy
import warnings

from .each import check_can_be_sent
from .groups import DataChunk, batches
from .order import Seeded
from .pipe import IterDataPipe, MapDataPipe, functional_datapipe, length

__all__ = [
    "BatcherMapDataPipe", "ConcaterMapDataPipe", "MapperMapDataPipe", "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe", "ZipperMapDataPipe",
]  # fmt: skip


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A sequence or mapping. `deepcopy`: keep a copy, so that what is done to it or to samples does not reach here."""

    def __init__(self, sequence, deepcopy=True):
        if deepcopy:
            try:
                sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )
        self.sequence = sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def default_fn(data):
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each sample (functional name: ``map``)."""

    def __init__(self, datapipe, fn=default_fn):
        super().__init__()
        check_can_be_sent(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """`batch_size` samples at a time (functional name: ``batch``).

    Args:
        drop_last: leave out a last batch that is not full.
        wrapper_class: what a list of samples is made into.
    """

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError(f"Batch size is required to be larger than 0! Got {batch_size}")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index):
        samples, error = [], None
        for key in range(index * self.batch_size, (index + 1) * self.batch_size):
            try:
                samples.append(self.datapipe[key])
            except IndexError as caught:
                error = caught
                break
        if error is not None and (self.drop_last or not samples):
            raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(samples)

    def __len__(self):
        return batches(*length(self, self.datapipe), self.batch_size, self.drop_last)


def _check_all(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The samples of the first pipe, then of the next, whose keys go on from there (functional name: ``concat``)."""

    def __init__(self, *datapipes):
        _check_all(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the samples that the pipes have at a key (functional name: ``zip``)."""

    def __init__(self, *datapipes):
        _check_all(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        samples = []
        for pipe in self.datapipes:
            try:
                samples.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(samples)

    def __len__(self):
        return min(map(len, self.datapipes))


class ShufflerIterDataPipe(Seeded, IterDataPipe):
    """A stream of the samples at `indices` (by default 0, 1, ...), in a random order."""

    def __init__(self, datapipe, *, indices=None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._order = self.indices

    def __iter__(self):
        for index in self._order:
            yield self.datapipe[index]

    def reset(self):
        self._begin_order()
        drawn = self._rng.sample(self.indices, len(self.indices)) if self._enabled else self.indices
        self._order = drawn[::-1] if self._enabled else drawn  # PyTorch takes them from the end

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
