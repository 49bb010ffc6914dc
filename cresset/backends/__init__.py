"""PyTorch's torch.backends: what the build has, and settings of it. A setting keeps its value whether or not its backend is here."""

import contextlib

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

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "disable_global_flags", "flags", "flags_frozen", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp",
    "opt_einsum", "quantized", "set_flags", "xnnpack",
]  # fmt: skip

fp32_precision = "none"
_frozen = [False]


def set_flags(_fp32_precision="none"):
    """Set the precision of float32 products for all backends; gives what it was."""
    global fp32_precision
    before, fp32_precision = fp32_precision, _fp32_precision
    return (before,)


@contextlib.contextmanager
def flags(fp32_precision="none"):
    """Inside, float32 products have this precision.

    >>> with cresset.backends.flags(fp32_precision="tf32"):
    ...     cresset.backends.fp32_precision
    'tf32'
    """
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


def disable_global_flags():
    """Say that settings should only be changed by the `flags` of each backend."""
    _frozen[0] = True


def flags_frozen():
    """Whether disable_global_flags was called."""
    return _frozen[0]
