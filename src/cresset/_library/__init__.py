"""torch._library: what stands behind torch.library. `operator` is a defined operator, `registration` defines and
implements, `custom_ops` makes operators of Python functions, `checking` is opcheck. Each part loads when it is first
used.
"""

import importlib
import importlib.util


def __getattr__(name):
    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
