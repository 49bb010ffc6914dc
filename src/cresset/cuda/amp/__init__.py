"""PyTorch's torch.cuda.amp: old names, which amp/old_names.py holds."""

from . import autocast_mode, common, grad_scaler  # noqa: F401


def __getattr__(name):
    from ...amp.old_names import (
        of_cuda,  # upward: amp stands above the devices; its old names are looked up when they are used
    )

    if name in of_cuda:
        return of_cuda[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    from ...amp.old_names import of_cuda  # upward: as above

    return sorted({*globals(), *of_cuda})
