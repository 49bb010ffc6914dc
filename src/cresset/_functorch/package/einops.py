"""functorch.einops: dimensions by name."""

from ...func import rearrange

__all__ = ["rearrange"]
