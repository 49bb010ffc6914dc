"""cuDNN: NVIDIA's convolutions. What is set here is told to the native convolutions; settings of recurrences are kept."""

import sys
import types

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


class _Module(types.ModuleType):
    """This module: setting one of its names tells the native side."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in ("enabled", "benchmark", "deterministic", "allow_tf32"):
            _native.cuda.set_convolutions(
                bool(self.enabled), bool(self.benchmark), bool(self.deterministic), bool(self.allow_tf32)
            )


sys.modules[__name__].__class__ = _Module


def version():
    """The library's version, such as 91500; None without it, or without a device."""
    return _native.cuda.cudnn_version() or None if _native.cuda.device_count() else None


def is_available():
    """Whether the library is here, and a device for it.

    >>> cresset.backends.cudnn.is_available() == (cresset.backends.cudnn.version() is not None)
    True
    """
    return version() is not None


def is_acceptable(tensor):
    """Whether the library could work on this tensor."""
    return is_available() and enabled and tensor.is_cuda and tensor.dtype in CUDNN_TENSOR_DTYPES
