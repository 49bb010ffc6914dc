"""PyTorch's place for what pipes of files use."""

from . import common  # noqa: F401
