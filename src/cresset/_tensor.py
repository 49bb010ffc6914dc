"""torch._tensor: where PyTorch keeps the class Tensor, and the function that files name for rebuilding its
subclasses."""

from ._native import Tensor
from ._utils import _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
