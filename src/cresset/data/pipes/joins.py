"""Pipes made of several: concat, mux, zip."""

from .pipe import IterDataPipe, functional_datapipe, length

__all__ = ["ConcaterIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The samples of the first pipe, then those of the next (functional name: ``concat``)."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(length(self, *self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """A sample of each pipe by turns, in whole rounds, until one of them ends (functional name: ``mux``)."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __iter__(self):
        for samples in zip(*map(iter, self.datapipes)):
            yield from samples

    def __len__(self):
        return min(length(self, *self.datapipes)) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of a sample of each pipe, until one of them ends (functional name: ``zip``)."""

    def __init__(self, *datapipes):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*map(iter, self.datapipes))

    def __len__(self):
        return min(length(self, *self.datapipes))
