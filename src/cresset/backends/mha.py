"""The fast path of MultiheadAttention and the Transformer's layers."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = [True]


def get_fastpath_enabled():
    """Whether the fast path may be taken.

    >>> cresset.backends.mha.get_fastpath_enabled()
    True
    """
    return _enabled[0]


def set_fastpath_enabled(value):
    """Let the fast path be taken, or not."""
    _enabled[0] = bool(value)
