"""Datasets that are chained, by PyTorch's names: what a program or a package derives its own from. The pipes that
PyTorch brings along (`datapipes.iter`) are not here; torchdata's nodes do their work.
"""

import cresset

from .datasets import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe", "apply_random_seed", "apply_sharding", "apply_shuffle_settings", "pipes_in"]


class IterDataPipe(IterableDataset):
    """A stream of samples, made from others that are its attributes."""


class MapDataPipe(Dataset):
    """A dataset with keys, made from others that are its attributes."""


class _Wrapper:
    """A pipe in a loader: it stands for another one."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __len__(self):
        return len(self._datapipe)


class _IterDataPipeSerializationWrapper(_Wrapper, IterDataPipe):
    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_Wrapper, MapDataPipe):
    def __getitem__(self, index):
        return self._datapipe[index]


def pipes_in(pipe):
    """This pipe and those that it is made of, each once."""
    found, waiting = {}, [pipe]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (IterDataPipe, MapDataPipe)) and id(value) not in found:
            found[id(value)] = value
            waiting.extend(vars(value).values())
    return list(found.values())


def apply_sharding(datapipe, num_of_instances, instance_id):
    """Tell the pipes that can take a share which share is theirs."""
    for pipe in pipes_in(datapipe):
        if hasattr(pipe, "is_shardable") and pipe.is_shardable() and hasattr(pipe, "apply_sharding"):
            pipe.apply_sharding(num_of_instances, instance_id)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle=None):
    """Let the pipes that can shuffle do so, or not; None leaves them as they are."""
    if shuffle is not None:
        for pipe in pipes_in(datapipe):
            if hasattr(pipe, "set_shuffle") and hasattr(pipe, "set_seed"):
                pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Give each pipe that draws random numbers a seed from this generator."""
    for pipe in pipes_in(datapipe):
        if hasattr(pipe, "set_seed"):
            pipe.set_seed(int(cresset.empty((), dtype=cresset.int64).random_(generator=rng).item()))
    return datapipe
