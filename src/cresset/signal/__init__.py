"""Signal processing: so far, windows."""

from . import windows as windows

__all__ = ["windows"]
