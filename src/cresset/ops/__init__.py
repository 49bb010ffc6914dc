"""What each operator is: formulas, derivatives, functions made of others. Importing a topic puts its names into the registry."""

import importlib
import importlib.util

from . import autocast, registry

# The topics, one module each. Order matters only for names that a later topic redefines.
TOPICS = (
    "formulas", "viewing", "conversion", "arithmetic_forms", "creation", "random", "reducing", "scanning", "normalizing", "class_losses", "indexing", "scattering", "sorting", "products", "attention", "recurrence", "convolving", "pooling",
    "rearranging", "joining", "diagonals", "copies", "contractions", "statistics", "differences", "histograms", "distances", "comparing", "ordering", "windows",
    "spectrograms", "matrices", "foreach", "scaling", "sparse_products", "layouts", "segments", "checking", "bits", "older_forms",
    "quantizing",
)  # fmt: skip

for _topic in TOPICS:
    importlib.import_module("." + _topic, __name__)

functions, methods = registry.functions, registry.methods
for _names in (functions, methods):
    autocast.apply(_names)
    registry.let_others_answer(_names)


def __getattr__(name):
    """`torch.ops.<namespace>`: the operators that programs define (see namespaces.py), and parts of this package not loaded yet."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module("." + name, __name__)
    from . import namespaces

    return namespaces.load_library if name == "load_library" else namespaces.namespace(name)
