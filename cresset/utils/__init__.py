"""What does not belong to tensors or layers: data loading, checkpointing, hooks. Each part loads when it is first used."""

import importlib


def __getattr__(name):
    try:
        return importlib.import_module("." + name, __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module 'cresset.utils' has no attribute {name!r}") from None
