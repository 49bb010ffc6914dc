"""A pipe that stands for another one, by the names of PyTorch's loader."""

from .pipe import IterDataPipe, MapDataPipe, length

__all__ = ["_IterDataPipeSerializationWrapper", "_MapDataPipeSerializationWrapper"]


class _Wrapper:
    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __len__(self):
        return length(self, self._datapipe)[0]


class _IterDataPipeSerializationWrapper(_Wrapper, IterDataPipe):
    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_Wrapper, MapDataPipe):
    def __getitem__(self, index):
        return self._datapipe[index]
