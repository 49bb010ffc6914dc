"""Where PyTorch keeps the table of backends: `torch._dynamo.backends.registry`."""

from ...compiler.backends import find as lookup_backend
from ...compiler.backends import names as list_backends
from ...compiler.backends import register as register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
