"""Pipes that change the order: sample, shuffle."""

import random

from ..samplers import SequentialSampler, drawn_seed
from .pipe import IterDataPipe, functional_datapipe, length

__all__ = ["SamplerIterDataPipe", "Seeded", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """The indices that a sampler of `datapipe` gives.

    Args:
        sampler: its class; sampler_args, sampler_kwargs: what it is made with, beside `data_source`.
    """

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe, self.sampler_args = datapipe, () if sampler_args is None else sampler_args
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return length(self, self.sampler)[0]


class Seeded:
    """What shuffles has a generator of its own, seeded for each iterator: by set_seed, else by PyTorch's generator."""

    def __init__(self):
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle=True):
        """Shuffle, or give the samples as they come."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next iterator's order."""
        self._seed = seed
        return self

    def _begin_order(self):
        if self._enabled:
            self._rng.seed(drawn_seed(None) if self._seed is None else self._seed)
            self._seed = None


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Seeded, IterDataPipe):
    """The samples in a random order: each is drawn from `buffer_size` that wait (functional name: ``shuffle``).

    Args:
        buffer_size: 1 leaves the order, the length of the pipe makes every order as likely.
        unbatch_level: take batches apart first, so many levels of them.
    """

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError(f"buffer_size should be larger than 0, got {buffer_size}")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        self.buffer_size, self._buffer = buffer_size, []

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer, draw = self._buffer, self._rng.randint
        for sample in self.datapipe:
            if len(buffer) == self.buffer_size:
                place = draw(0, len(buffer) - 1)
                sample, buffer[place] = buffer[place], sample
                yield sample
            else:
                buffer.append(sample)
        while buffer:
            yield buffer.pop(draw(0, len(buffer) - 1))

    def __len__(self):
        return length(self, self.datapipe)[0]

    def reset(self):
        self._buffer = []
        self._begin_order()
