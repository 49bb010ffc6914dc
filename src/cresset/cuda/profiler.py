"""Control of NVIDIA's profilers."""

import contextlib

from .absent import require
from .errors import check_error

__all__ = ["profile", "start", "stop"]


def start():
    """Let a profiler that watches this process (Nsight) collect, from here on."""
    from . import runtime

    require()
    check_error(runtime.cudaProfilerStart())


def stop():
    """Let a profiler that watches this process stop collecting."""
    from . import runtime

    require()
    check_error(runtime.cudaProfilerStop())


@contextlib.contextmanager
def profile():
    """Collect inside a block of code."""
    start()
    try:
        yield
    finally:
        stop()
