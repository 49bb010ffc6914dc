"""What PyTorch's tracer raises."""

from ..compiler.backends import InvalidBackend
from ..compiler.fullgraph import TorchDynamoException, Unsupported

__all__ = ["InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]


class UserError(TorchDynamoException):
    """A program that cannot be exported."""
