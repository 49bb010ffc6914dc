"""What does not belong to tensors or layers: data loading, checkpointing, hooks. Each part loads when it is first
used."""

import importlib

from ..show import missing_names
from ..tensors.swapping import swap_tensors

__all__ = ["swap_tensors"]


def __getattr__(name):
    if name == "ThroughputBenchmark":
        return importlib.import_module(".throughput_benchmark", __name__).ThroughputBenchmark
    try:
        return importlib.import_module("." + name, __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise missing_names.MissingName(__name__, name) from None


def __dir__():
    import pkgutil

    return sorted({*globals(), *(part.name for part in pkgutil.iter_modules(__path__))})
