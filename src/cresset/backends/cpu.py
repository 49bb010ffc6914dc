"""The processor as this build uses it."""

from .. import _native

__all__ = ["get_cpu_capability"]

_CAPABILITY = {"avx2": "AVX2", "avx512": "AVX512"}.get(_native.build_info()["isa"], "DEFAULT")


def get_cpu_capability() -> str:
    """The instruction set that kernels use, in PyTorch's words: "DEFAULT", "AVX2" or "AVX512".

    >>> cresset.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    True
    """
    return _CAPABILITY
