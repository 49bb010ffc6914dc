"""cuDNN: NVIDIA's convolutions. What is set here is told to the native convolutions; settings of recurrences are
kept."""

import sys

from .. import _native
from .precision import FloatPrecision, on_change, precision_of, set_precision
from .settings import Kept, Made, boolean, make_flags, make_settings

__all__ = ["CUDNN_TENSOR_DTYPES", "flags", "is_acceptable", "is_available", "set_flags", "version"]

conv = FloatPrecision("cuda", "conv")
rnn = FloatPrecision("cuda", "rnn")
CUDNN_TENSOR_DTYPES = {_native.float16, _native.float32, _native.float64}
_DEPTHWISE = ("auto", "cudnn", "native")


def _tell():
    module = sys.modules[__name__]
    tf32 = precision_of("cuda", "conv") == "tf32"
    limit = 10 if module.benchmark_limit is None else module.benchmark_limit
    _native.cuda.set_convolutions(module.enabled, module.benchmark, module.deterministic, tf32, limit)


def _set_tf32(value):
    for operation in ("conv", "rnn"):
        set_precision("cuda", operation, "tf32" if boolean("allow_tf32", value) else "none")


def _count(name, value):
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise RuntimeError(f"{name} expects a number of plans, got {value!r}")
    return value


def _depthwise(name, value):
    if value not in _DEPTHWISE:
        raise RuntimeError(f"Unknown cuDNN depthwise kernel mode: {value}. Expected one of: {', '.join(_DEPTHWISE)}")
    return value


make_settings(
    __name__,
    enabled=Kept(True, tell=_tell),
    benchmark=Kept(False, tell=_tell),
    benchmark_limit=Kept(None, _count, _tell),
    deterministic=Kept(False, tell=_tell),
    allow_tf32=Made(lambda: precision_of("cuda", "conv") == "tf32", _set_tf32),
    fp32_precision=Made(lambda: precision_of("cuda", "all"), lambda value: set_precision("cuda", "all", value)),
    depthwise_kernel=Kept("auto", _depthwise),
)
on_change.append(_tell)
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
    return is_available() and sys.modules[__name__].enabled and tensor.is_cuda and tensor.dtype in CUDNN_TENSOR_DTYPES
