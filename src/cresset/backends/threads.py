"""The threads that PyTorch keeps for running several operations at once, and what builds can be asked about themselves.

An operation is run by the thread that calls it, here as in PyTorch's eager mode; how many threads work on one is
`set_num_threads`.
"""

import operator

__all__ = ["compiled_with_cxx11_abi", "get_num_interop_threads", "init_num_threads", "set_num_interop_threads"]

_chosen = None


def get_num_interop_threads():
    """How many threads may run operations at the same time for one program: what `set_num_interop_threads` was told,
    else the number of processors.
    """
    from ..__config__ import usable_processors

    return usable_processors() if _chosen is None else _chosen


def set_num_interop_threads(num):
    """Say how many threads may run operations at the same time; once in a process. Only `get_num_interop_threads` reads
    it.
    """
    global _chosen
    try:
        num = operator.index(num)
    except TypeError:
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}") from None
    if abs(num) >= 2**63:
        raise ValueError(f"set_num_interop_threads: {num} does not fit in 64 bits")
    if num < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {num}")
    if _chosen is not None:
        raise RuntimeError(
            "set_num_interop_threads: cannot set number of interop threads after set_num_interop_threads called (it "
            f"is {_chosen})"
        )
    _chosen = num


def init_num_threads():
    """Make this thread's operations use `get_num_threads()` threads: they do so from the start."""


def compiled_with_cxx11_abi():
    """Whether the native module uses the layout of std::string since GCC 5: yes."""
    return True
