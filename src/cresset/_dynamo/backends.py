"""Where PyTorch keeps the table of backends: `torch._dynamo.backends.registry`."""

import sys

from ..compiler.backends import find as lookup_backend
from ..compiler.backends import names as list_backends
from ..compiler.backends import register as register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend", "registry"]

registry = sys.modules[__name__]
sys.modules[f"{__name__}.registry"] = registry
__path__: list = []  # so that `import torch._dynamo.backends.registry` finds it
