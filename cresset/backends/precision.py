"""set_float32_matmul_precision: how precise products of float32 matrices must be. This build's CPU products are always exact float32."""

import warnings

from . import cuda, mkldnn

__all__ = ["get_float32_matmul_precision", "set_float32_matmul_precision"]

_SETTINGS = {"highest": (False, "ieee", "ieee"), "high": (True, "tf32", "tf32"), "medium": (True, "tf32", "bf16")}
_current = ["highest"]


def get_float32_matmul_precision():
    """How precise products of float32 matrices must be: "highest", "high" or "medium".

    >>> cresset.get_float32_matmul_precision()
    'highest'
    """
    if _SETTINGS[_current[0]][0] != cuda.matmul.allow_tf32:  # somebody has set that instead
        return "high" if cuda.matmul.allow_tf32 else "highest"
    return _current[0]


def set_float32_matmul_precision(precision):
    """Allow faster products of float32 matrices where a device has them: "highest" (none), "high" (TF32) or "medium" (bfloat16)."""
    if precision not in _SETTINGS:
        warnings.warn(
            f"{precision!r} is not one of 'highest', 'high', or 'medium'; the current precision is unchanged",
            stacklevel=2,
        )
        return
    _current[0] = precision
    cuda.matmul.allow_tf32, cuda.matmul.fp32_precision, mkldnn.matmul.fp32_precision = _SETTINGS[precision]
