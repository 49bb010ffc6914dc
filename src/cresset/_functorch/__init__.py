"""torch._functorch: what programs name of PyTorch's transforms by their files; the transforms are `cresset.func`."""

import importlib
import importlib.util
import sys

from ..func import vmapping as vmap

# Packages put functions of their own into PyTorch's file of vmap, so it is the file that vmap is in.
sys.modules[f"{__name__}.vmap"] = vmap


def __getattr__(name):
    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
