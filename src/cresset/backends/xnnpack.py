"""XNNPACK, which this build does not have."""

from .settings import Kept, make_settings

__all__ = []


def _fixed(*_):
    raise RuntimeError("Assignment not supported")


make_settings(__name__, enabled=Kept(False, _fixed))
