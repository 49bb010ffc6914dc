"""cuDNN: NVIDIA's convolutions and recurrences. Settings are kept for a CUDA backend."""

from .. import _native
from .settings import Namespace, make_flags

__all__ = ["CUDNN_TENSOR_DTYPES", "flags", "is_acceptable", "is_available", "set_flags", "version"]

enabled = True
benchmark = False
benchmark_limit = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"
conv = Namespace(fp32_precision="tf32")
rnn = Namespace(fp32_precision="tf32")
CUDNN_TENSOR_DTYPES = {_native.float16, _native.float32, _native.float64}

set_flags, flags = make_flags(
    __name__,
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel="auto",
)


def version():
    """The library's version; None without it."""
    return None


def is_available():
    """Whether the library is here.

    >>> cresset.backends.cudnn.is_available()
    False
    """
    return False


def is_acceptable(tensor):
    """Whether the library could work on this tensor."""
    return is_available() and enabled and tensor.is_cuda and tensor.dtype in CUDNN_TENSOR_DTYPES
