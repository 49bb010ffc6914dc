"""Settings of CUDA's products, of attention, and of libraries."""

import contextlib
import enum
import warnings

from .. import _native
from ..ops.attention_choice import SDPAParams, allowed, only_forms, set_forms, why_not
from .precision import FloatPrecision, on_change
from .settings import boolean

__all__ = [
    "SDPAParams", "allow_fp16_bf16_reduction_math_sdp", "can_use_cudnn_attention", "can_use_efficient_attention",
    "can_use_flash_attention", "cudnn_sdp_enabled",
    "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed", "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library", "preferred_linalg_library", "preferred_rocm_fa_library", "sdp_kernel",
]  # fmt: skip


def _reduction(name, value):
    """A permission to add up in fewer bits, True or False, and whether a sum may be split: a pair of them, or the first
    alone.
    """
    parts = (value,) if isinstance(value, bool) else value
    if (
        not isinstance(parts, (tuple, list))
        or not all(isinstance(part, bool) for part in parts)
        or len(parts) not in (1, 2)
    ):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)}")
    if parts[1:] == (False,) or parts[1:] == [False]:
        raise RuntimeError(f"{name}: cuBLASLt cannot be kept from splitting a sum here; the second value must be True")
    return parts[0]


class _Products(FloatPrecision):
    """How precise products are: what is set here is told to cuBLAS. `allow_tf32` and `fp32_precision` say the same."""

    _NAMES = {
        "allow_fp16_reduced_precision_reduction": (True, _reduction),
        "allow_bf16_reduced_precision_reduction": (True, _reduction),
        "allow_fp16_accumulation": (False, boolean),
    }

    def __init__(self):
        super().__init__("cuda", "matmul")
        self.__dict__["kept"] = {name: default for name, (default, _) in self._NAMES.items()}

    def __getattr__(self, name):
        if name in self._NAMES:
            return self.kept[name]
        if name == "allow_tf32":
            return self.fp32_precision == "tf32"
        if name.endswith("_reduction_split_k") and name.removesuffix("_split_k") in self._NAMES:
            return True
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        if name in self._NAMES:
            self.kept[name] = self._NAMES[name][1](name, value)
            self.tell()
        elif name == "allow_tf32":
            self.fp32_precision = "tf32" if boolean(name, value) else "ieee"
        else:
            super().__setattr__(name, value)

    def tell(self):
        _native.cuda.set_products(
            self.allow_tf32, self.allow_fp16_reduced_precision_reduction, self.allow_bf16_reduced_precision_reduction
        )


matmul = _Products()
on_change.append(matmul.tell)


def is_built():
    """Whether CUDA can be used: the backend is always there, and is opened where the driver has a device.

    >>> cresset.backends.cuda.is_built() == cresset.cuda.is_available()
    True
    """
    return _native.cuda.device_count() > 0


# ---------------------------------------------------------------- attention


def _setting(kind):
    def enabled():
        return allowed[kind]

    def enable(enabled):
        set_forms(**{kind: boolean(f"set_sdp_use_{kind}", enabled)})

    enabled.__doc__ = f"Whether scaled_dot_product_attention may use its {kind} form."
    enable.__doc__ = f"Let scaled_dot_product_attention use its {kind} form, or not."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _setting("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _setting("mem_efficient")
math_sdp_enabled, enable_math_sdp = _setting("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _setting("cudnn")
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _setting("fp16_bf16_reduction_math")


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Inside, scaled_dot_product_attention may use these forms.

    >>> with cresset.backends.cuda.sdp_kernel(enable_flash=False):
    ...     cresset.backends.cuda.flash_sdp_enabled()
    False
    """
    wanted = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn}
    with only_forms([form for form, enabled in wanted.items() if boolean(form, enabled)]):
        yield {}


def is_flash_attention_available():
    """Whether attention in blocks, which does not keep the weights, can run on a device here."""
    return _native.cuda.device_count() > 0


def is_ck_sdpa_available():
    """Whether the build has AMD's attention."""
    return False


def _can_use(form, params, debug):
    if params.query.is_cuda:
        reason = f"{form} attention is turned off" if not allowed[form] else why_not(form, params)
    else:
        reason = f"{form} attention is asked about on CUDA, the tensors are on {params.query.device}"
    if reason is not None and debug:
        warnings.warn(reason, stacklevel=3)
    return reason is None


def can_use_flash_attention(params, debug=False):
    """Whether attention in blocks computes it on tensor cores: half precision on the device, in rows of a multiple of 8
    elements and at most 128, without a mask.

    With `debug`, a warning says why not.
    """
    return _can_use("flash", params, debug)


def can_use_efficient_attention(params, debug=False):
    """Whether attention in blocks computes it: tensors on the device, without dropout. With `debug`, a warning says why
    not.
    """
    return _can_use("mem_efficient", params, debug)


def can_use_cudnn_attention(params, debug=False):
    """Whether cuDNN's attention computes it: as can_use_flash_attention, and the library is there. With `debug`, a
    warning says why not.
    """
    return _can_use("cudnn", params, debug)


# ---------------------------------------------------------------- libraries


class _LinalgBackend(enum.IntEnum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.IntEnum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(enum.IntEnum):
    Default = 0
    AOTriton = 1
    Ck = 2


# What each name means. A library that this build does not call is refused: choosing it would change nothing.
_LINALG = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
_BLAS = {
    "default": _BlasBackend.Cublaslt, "cublas": _BlasBackend.Cublas, "hipblas": _BlasBackend.Cublas,
    "cublaslt": _BlasBackend.Cublaslt,
    "hipblaslt": _BlasBackend.Cublaslt, "ck": _BlasBackend.Ck,
}  # fmt: skip
_ROCM = {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck}


def _choose(who, names, given, here):
    """What `given` names, which must be one of `here`; the first of them if it is None."""
    if given is None:
        return here[0]
    if isinstance(given, str):
        if given not in names:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}.")
        given = names[given]
    elif not isinstance(given, type(here[0])):
        raise RuntimeError("Unknown input value type.")
    if given not in here:
        raise RuntimeError(
            f"{who}: Cannot set preferred backend to {given.name}: only {', '.join(one.name for one in here)} is used "
            "here"
        )
    return here[0]


def preferred_linalg_library(backend=None):
    """The library for linear algebra on CUDA, which is cuSOLVER; another one is refused."""
    return _choose("preferred_linalg_library", _LINALG, backend, (_LinalgBackend.Default, _LinalgBackend.Cusolver))


def preferred_blas_library(backend=None):
    """The library for products on CUDA, which is cuBLASLt; another one is refused."""
    return _choose("preferred_blas_library", _BLAS, backend, (_BlasBackend.Cublaslt, _BlasBackend.Default))


def preferred_rocm_fa_library(backend=None):
    """The library for attention on AMD's devices, which are not supported: only the default can be named."""
    return _choose("preferred_rocm_fa_library", _ROCM, backend, (_ROCmFABackend.Default,))


class _PlanCache:
    """cuFFT's plans of one device: how many are kept (`size`), at most how many (`max_size`), `clear()`. Index it with
    a device for another's.

    >>> cresset.backends.cuda.cufft_plan_cache[0].max_size = 32  # doctest: +SKIP
    """

    def __init__(self, device=None):
        self._device = device

    def _index(self):
        return _native.cuda.current_device() if self._device is None else self._device

    @property
    def size(self):
        return _native.cuda.count_fourier_plans(self._index())

    @property
    def max_size(self):
        return _native.cuda.most_fourier_plans(self._index())

    @max_size.setter
    def max_size(self, value):
        _native.cuda.set_most_fourier_plans(self._index(), value)

    def clear(self):
        _native.cuda.forget_fourier_plans(self._index())

    def __getitem__(self, device):
        index = _native.device(device).index if isinstance(device, str) else getattr(device, "index", device)
        return _PlanCache(_native.cuda.current_device() if index is None else index)


cufft_plan_cache = _PlanCache()
