"""PyTorch's place for pipes."""

from . import datapipe  # noqa: F401
