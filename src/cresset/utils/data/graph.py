"""PyTorch's place for the pipes that a pipe is made of."""

from ...data.pipes.graph import traverse_dps  # noqa: F401
