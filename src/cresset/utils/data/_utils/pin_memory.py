"""PyTorch's place for pinned memory."""

from ....data.pinning import _pin_memory_loop, pin_memory  # noqa: F401
