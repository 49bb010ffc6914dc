"""Where PyTorch keeps the class of compiled modules, and whether there are such."""

from ..compiler import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported():
    """Whether `torch.compile` compiles here: always."""
    return True
