"""PyTorch's torch.backends: what the build has, and settings of it. A setting keeps its value whether or not its
backend is here.
"""

from . import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xnnpack,
)
from .precision import precision_of, set_precision
from .settings import Made, freeze, is_frozen, make_flags, make_settings

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "disable_global_flags", "flags", "flags_frozen", "kleidiai", "mha", "miopen",
    "mkl", "mkldnn", "mps", "nnpack", "openmp",
    "opt_einsum", "quantized", "set_flags", "xnnpack",
]  # fmt: skip

make_settings(
    __name__,
    fp32_precision=Made(lambda: precision_of("generic", "all"), lambda value: set_precision("generic", "all", value)),
)
set_flags, flags = make_flags(__name__, fp32_precision="none")


def disable_global_flags():
    """From now on settings can only be changed by the `flags` of each backend."""
    freeze()


def flags_frozen():
    """Whether disable_global_flags was called.

    >>> cresset.backends.flags_frozen()
    False
    """
    return is_frozen()
