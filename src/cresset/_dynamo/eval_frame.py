"""Where PyTorch keeps the class of compiled modules."""

from ..compiler import OptimizedModule

__all__ = ["OptimizedModule"]
