"""torch.multiprocessing: Python's multiprocessing, whose queues and pipes send tensors through shared memory, and
`spawn`.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies",
    "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip


def get_all_sharing_strategies():
    """The ways to share memory that there are."""
    return {"file_descriptor", "file_system"}


_strategy = ["file_descriptor"]


def get_sharing_strategy():
    """The way memory is shared.

    >>> cresset.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy[0]


def set_sharing_strategy(new_strategy):
    """Choose how memory is shared. There is one way, "file_descriptor"; "file_system", which PyTorch has to spare
    descriptors, is accepted and does the same.
    """
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system', got {new_strategy!r}")
    _strategy[0] = new_strategy


init_reductions()
