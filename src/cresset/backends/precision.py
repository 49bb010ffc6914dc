"""How precise products of float32 are: "ieee" (float32 throughout), "tf32" or "bf16" (fewer bits may be used), or
"none" (nothing was said).

A precision is set for one operation of a backend, for all of a backend's, or for all backends; the nearest word counts.
It is a permission: cuBLAS and cuDNN use it on a GPU, and this build's CPU products are always exact float32.
"""

import warnings

__all__ = [
    "FloatPrecision", "get_float32_matmul_precision", "on_change", "precision_of", "set_float32_matmul_precision",
    "set_precision",
]  # fmt: skip

_KNOWN = ("none", "ieee", "tf32", "bf16")
_LACKING = {"cuda": ("bf16",)}
_said = {("cuda", "conv"): "tf32", ("cuda", "rnn"): "tf32"}  # (backend, operation) -> precision
on_change = []  # functions that are called after every change


def precision_of(backend, operation):
    """The precision that counts for an operation ("matmul", "conv", "rnn", or "all") of a backend ("cuda", "mkldnn", or
    "generic").
    """
    for place in ((backend, operation), (backend, "all"), ("generic", "all")):
        said = _said.get(place, "none")
        if said != "none" and said not in _LACKING.get(backend, ()):
            return said
    return "none"


def set_precision(backend, operation, value):
    """Say how precise an operation of a backend must be."""
    if not isinstance(value, str):
        raise TypeError(f"fp32_precision: expected one of {', '.join(_KNOWN)}, got {value!r}")
    if value not in _KNOWN:
        raise RuntimeError(f"Unknown precision: {value}")
    if value in _LACKING.get(backend, ()):
        raise RuntimeError(f"backend '{backend}' does not support precision '{value}'")
    _said[backend, operation] = value
    for told in on_change:
        told()


class FloatPrecision:
    """The settings of one operation of a backend: `fp32_precision`."""

    def __init__(self, backend, operation):
        self.__dict__.update(backend=backend, operation=operation)

    def __getattr__(self, name):
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        return precision_of(self.backend, self.operation)

    def __setattr__(self, name, value):
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        set_precision(self.backend, self.operation, value)


_WORDS = {
    "highest": ("ieee", "ieee"),
    "high": ("tf32", "tf32"),
    "medium": ("tf32", "bf16"),
}  # of CUDA's and oneDNN's products


def get_float32_matmul_precision():
    """How precise products of float32 matrices must be: "highest", "high" or "medium".

    >>> cresset.get_float32_matmul_precision()
    'highest'
    """
    if precision_of("cuda", "matmul") != "tf32":
        return "highest"
    return "medium" if precision_of("mkldnn", "matmul") == "bf16" else "high"


def set_float32_matmul_precision(precision):
    """Allow faster products of float32 matrices where a device has them: "highest" (none), "high" (TF32) or "medium"
    (bfloat16).
    """
    if precision not in _WORDS:
        warnings.warn(
            f"{precision!r} is not one of 'highest', 'high', or 'medium'; the current precision is unchanged",
            stacklevel=2,
        )
        return
    for backend, value in zip(("cuda", "mkldnn"), _WORDS[precision], strict=True):
        set_precision(backend, "matmul", value)
