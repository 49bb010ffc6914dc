"""NNPACK, which this build does not have. The setting keeps its value."""

import contextlib

__all__ = ["flags", "is_available", "set_flags"]

_enabled = [True]


def is_available():
    """Whether the build has NNPACK."""
    return False


def set_flags(_enabled_now):
    """Set whether NNPACK may be used; gives what it was."""
    before, _enabled[0] = _enabled[0], _enabled_now
    return (before,)


@contextlib.contextmanager
def flags(enabled=False):
    """Inside, NNPACK may be used or not."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
