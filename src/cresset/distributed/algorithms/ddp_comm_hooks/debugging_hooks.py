"""Hooks that show what exchanging costs."""

from ....futures import Future

__all__ = ["noop_hook"]


def noop_hook(_, bucket):
    """Exchange nothing: each process keeps its own gradients."""
    future = Future()
    future.set_result(bucket.buffer())
    return future
