"""What each operator is: formulas, derivatives, functions made of others. Importing a topic puts its names into the
registry.
"""

import importlib
import importlib.util

from . import autocast, homes, registry

# The topics, one module each. Order matters only for names that a later topic redefines.
TOPICS = (
    "formulas", "view", "view_in_place", "copy", "arithmetic", "metadata", "creation", "random", "reduction", "scan",
    "softmax", "normalization", "loss", "margin", "alignments", "indexing", "scatter",
    "sorting", "matmul", "matmul_contraction", "cross", "attention", "recurrence", "convolution", "pooling",
    "rearrange", "join", "diagonal", "statistics",
    "difference", "histogram", "distance", "compare", "window", "fourier",
    "linalg_factors", "linalg_equations", "linalg_values", "linalg", "foreach", "scaling", "sparse",
    "sparse_layout", "nested_layout", "segment", "check",
    "bits", "quantize", "packed_weights", "padding", "columns", "resampling", "grid",
)  # fmt: skip

for _topic in TOPICS:
    importlib.import_module("." + _topic, __name__)

functions, methods = registry.functions, registry.methods
for _names in (functions, methods):
    autocast.apply(_names)
    registry.let_others_answer(_names, homes=homes.HOMES)
registry.tell_names_apart()


def __getattr__(name):
    """`torch.ops.<namespace>`: the operators that programs define (see namespaces.py), and parts of this package not
    loaded yet.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module("." + name, __name__)
    from . import namespaces

    found = namespaces.load_library if name == "load_library" else namespaces.namespace(name)
    globals()[name] = (
        found  # looking for a module of this name takes 0.2 ms: once, not in each step of an exported program
    )
    return found
