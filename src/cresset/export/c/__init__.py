"""An exported program as one file of C99, which needs neither Python nor cresset."""

from .writing import to_c

__all__ = ["to_c"]
