"""PyTorch's torch.nn.parallel. Several GPUs in one process: a batch is scattered, the model replicated, its copies
applied, their results gathered. Several processes: the same model in each, with averaged gradients."""

from ...show import missing_names as _missing_names
from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]

_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name == "comm":  # imported when it is first asked for
        import importlib

        return importlib.import_module(".comm", __name__)
    return _missing(name)
