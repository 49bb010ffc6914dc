"""AMD's MIOpen, which this build does not have. The setting keeps its value."""

from .settings import Kept, make_flags, make_settings

__all__ = ["flags", "set_flags"]

make_settings(__name__, immediate=Kept(False))
set_flags, flags = make_flags(__name__, immediate=False)
