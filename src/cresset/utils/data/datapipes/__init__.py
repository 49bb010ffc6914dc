"""PyTorch's place for pipes."""

from . import datapipe, iter, map, utils  # noqa: F401
