"""torch.nn.utils._expanded_weights: parameters that get the gradient of each sample, not their sum."""

from . import layers  # noqa: F401  (which fills HANDLED_FUNCTIONS)
from .expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
