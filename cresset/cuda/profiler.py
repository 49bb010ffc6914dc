"""Control of NVIDIA's profilers."""

import contextlib

from .absent import require

__all__ = ["profile", "start", "stop"]


def start():
    """Start collecting."""
    require()


def stop():
    """Stop collecting."""
    require()


@contextlib.contextmanager
def profile():
    """Collect inside a block of code."""
    start()
    try:
        yield
    finally:
        stop()
