"""torch.functional: where PyTorch keeps the functions that are written in Python. All of them are `torch.<name>`,
too."""

import cresset

_NAMES = (
    "atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist chain_matmul "
    "einsum istft lu norm meshgrid pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
).split()

globals().update({name: getattr(cresset, name) for name in _NAMES})
__all__ = list(_NAMES)


def __getattr__(name):
    if name == "F":  # PyTorch's file imports it
        from .nn import functional  # upward: only a name

        return functional
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
