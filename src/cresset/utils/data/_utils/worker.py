"""PyTorch's place for worker information, and for what packages with workers of their own take from it."""

import dataclasses as _dataclasses
import os as _os
import sys as _sys
import types as _types

from ....data.workers import WorkerInfo, get_worker_info, set_worker_info  # noqa: F401


@_dataclasses.dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """From a worker: its stream has come to its end."""

    worker_id: int


@_dataclasses.dataclass(frozen=True)
class _ResumeIteration:
    """To a worker: the next epoch."""

    seed: int | None = None


class ManagerWatchdog:
    """In a worker: whether the process that started it is still there."""

    def __init__(self):
        self.manager_pid = _os.getppid()
        self.manager_dead = False

    def is_alive(self):
        self.manager_dead = self.manager_dead or _os.getppid() != self.manager_pid
        return not self.manager_dead


def _generate_state(base_seed, worker_id):
    """Four numbers for NumPy's generator in a worker."""
    import numpy

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(words).generate_state(4).tolist()


class _Module(_types.ModuleType):
    """With `_worker_info`, which packages set in their workers, as a name for what `get_worker_info` tells."""

    @property
    def _worker_info(self):
        return get_worker_info()

    @_worker_info.setter
    def _worker_info(self, info):
        set_worker_info(info)


_sys.modules[__name__].__class__ = _Module
