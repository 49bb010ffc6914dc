"""AMD's MIOpen, which this build does not have. The setting keeps its value."""

from .settings import make_flags

__all__ = ["flags", "set_flags"]

immediate = False

set_flags, flags = make_flags(__name__, immediate=False)
