"""Ranges and marks for NVIDIA's profilers, through NVTX where it is installed, and for `cresset.profiler` in any
case."""

import contextlib
import functools
import itertools
import threading

from .. import _native
from .libraries import open_library

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

# The functions, and the names of what they take and give, as ctypes has them.
_FUNCTIONS = {
    "nvtxRangePushA": (["c_char_p"], "c_int"),
    "nvtxRangePop": ([], "c_int"),
    "nvtxRangeStartA": (["c_char_p"], "c_uint64"),
    "nvtxRangeEnd": (["c_uint64"], None),
    "nvtxMarkA": (["c_char_p"], None),
}
_open = threading.local()  # .recorded: of each range that is open in this thread, whether cresset.profiler has it
_numbers = itertools.count(1)


@functools.cache
def _library():
    """NVTX's functions by name; none where the library is not installed."""
    import ctypes

    for names in (("libnvToolsExt.so.1", "libnvToolsExt.so"), ("libnvtx3interop.so.1", "libnvtx3interop.so")):
        library, _ = open_library(*names)
        found = {name: getattr(library, name, None) for name in _FUNCTIONS} if library is not None else {}
        if found and None not in found.values():
            for name, (takes, gives) in _FUNCTIONS.items():
                found[name].argtypes = [getattr(ctypes, kind) for kind in takes]
                found[name].restype = gives and getattr(ctypes, gives)
            return found
    return {}


def _call(name, *arguments):
    if _native.cuda.device_count() == 0:
        raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
    function = _library().get(name)
    return function(*arguments) if function is not None else None


def _stack():
    if not hasattr(_open, "recorded"):
        _open.recorded = []
    return _open.recorded


def range_push(msg):
    """Begin a range inside the last one; gives its depth, 0 for the outermost.

    Args:
        msg: its name.
    """
    _call("nvtxRangePushA", str(msg).encode())
    _stack().append(_native.profile_enter(str(msg)))
    return len(_stack()) - 1


def range_pop():
    """End the range that began last; gives its depth, -1 where none was open."""
    _call("nvtxRangePop")
    if not _stack():
        return -1
    if _stack().pop():
        _native.profile_leave()
    return len(_stack())


def range_start(msg):
    """Begin a range that may overlap others, for NVIDIA's profilers; gives its handle.

    Args:
        msg: its name.
    """
    handle = _call("nvtxRangeStartA", str(msg).encode())
    return next(_numbers) if handle is None else handle


def range_end(range_id):
    """End the range with this handle."""
    _call("nvtxRangeEnd", range_id)


def mark(msg):
    """Mark a moment.

    Args:
        msg: its name.
    """
    _call("nvtxMarkA", str(msg).encode())
    if _native.profile_enter(str(msg)):
        _native.profile_leave()


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A range around a block of code, or around the calls of a function.

    Args:
        msg: its name; the other arguments are put in by `str.format`.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
