"""AdamW, in PyTorch's name for its place; it is written beside Adam."""

from .adam import AdamW

__all__ = ["AdamW"]
