"""torch._prims, as far as other packages name it."""

from .. import _prims_common as utils

__all__ = ["utils"]
