"""Differentiation: running recorded operations backward (and forward), and looking into what was recorded."""

import importlib
import os

from cresset import _native

from ..show import missing_names as _missing_names
from . import anomaly_mode, grad_mode, graph, variable
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .engine import backward, grad, register_hook, register_post_accumulate_grad_hook, retain_grad, tensor_backward
from .grad_mode import (
    _force_original_view_tracking,  # noqa: F401  (PyTorch's name for it)
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

# What the core calls, and the folder whose frames are not the user's when it tells where something happened.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _propagate(*call):
    from .forward_ad import propagate

    propagate(*call)


_native.set_python_hooks(anomaly_mode.note, anomaly_mode.explain, _propagate, PACKAGE)

# Loaded when first asked for.
_PARTS = {"forward_ad", "function", "functional", "profiler", "profiler_util"}
_NAMES = {
    "Function": "function", "gradcheck": "gradcheck", "gradgradcheck": "gradcheck", "kineto_available": "profiler",
}  # fmt: skip


SavedTensor = _native.SavedTensor


class _unsafe_preserve_version_counter:
    """In the block, changes of a tensor (or of each of several) in place go unnoticed."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, _native.Tensor) else tuple(tensors)

    def __enter__(self):
        self.versions = [tensor._version for tensor in self.tensors]

    def __exit__(self, *_):
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            _native.set_version(tensor, version)


def _profiler_enabled():
    """Whether calls are being recorded by a profiler."""
    return _native.is_profiling()


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module("." + name, __name__)
    if name in _NAMES:
        return getattr(importlib.import_module("." + _NAMES[name], __name__), name)
    raise _missing_names.MissingName(__name__, name)


_native.Tensor.backward = _native.face(_native.overridable(tensor_backward, "torch", False), "backward", "torch.Tensor")
_native.Tensor.register_hook = _native.overridable(register_hook, "torch.Tensor", False)
_native.Tensor.register_post_accumulate_grad_hook = _native.overridable(
    register_post_accumulate_grad_hook, "torch.Tensor", False, True
)
_native.Tensor.retain_grad = _native.overridable(retain_grad, "torch.Tensor", False, True)
