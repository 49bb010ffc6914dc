"""What PyTorch's tracer raises."""

from ..compiler.fullgraph import TorchDynamoException, Unsupported

__all__ = ["TorchDynamoException", "Unsupported", "UserError"]


class UserError(TorchDynamoException):
    """A program that cannot be exported."""
