"""torch.functional: where PyTorch keeps the functions that are written in Python. All of them are `torch.<name>`,
too."""

import cresset

from .ops.homes import HOMES

_NAMES = [name for name, home in HOMES.items() if home == "torch.functional"]
_NAMES += ["istft", "pca_lowrank", "svd_lowrank"]  # at home elsewhere, and imported there

globals().update({name: getattr(cresset, name) for name in _NAMES})
__all__ = _NAMES


def __getattr__(name):
    if name == "F":  # PyTorch's file imports it
        from .nn import functional  # upward: only a name

        return functional
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
