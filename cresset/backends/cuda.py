"""Settings of CUDA's products, of attention, and of libraries."""

import contextlib
import enum

from .. import _native
from .settings import Namespace

__all__ = [
    "SDPAParams", "allow_fp16_bf16_reduction_math_sdp", "can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention", "cudnn_sdp_enabled",
    "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed", "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
    "preferred_blas_library", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip


class _Products(Namespace):
    """How precise products are: what is set here is told to cuBLAS. `allow_tf32` and `fp32_precision` say the same."""

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        if name == "allow_tf32":
            self.__dict__["fp32_precision"] = "tf32" if value else "ieee"
        elif name == "fp32_precision":
            self.__dict__["allow_tf32"] = value == "tf32"
        _native.cuda.set_products(
            bool(self.allow_tf32),
            bool(self.allow_fp16_reduced_precision_reduction),
            bool(self.allow_bf16_reduced_precision_reduction),
        )


matmul = _Products(
    allow_tf32=False,
    fp32_precision="none",
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "fp16_bf16_reduction_math": False}


def is_built():
    """Whether CUDA can be used: the backend is always there, and is opened where the driver has a device.

    >>> cresset.backends.cuda.is_built() == cresset.cuda.is_available()
    True
    """
    return _native.cuda.device_count() > 0


# ---------------------------------------------------------------- attention


def _set_attention(**forms):
    _attention.update(forms)
    _native.cuda.set_cudnn_attention(_attention["cudnn"])


def _setting(kind):
    def enabled():
        return _attention[kind]

    def enable(enabled):
        _set_attention(**{kind: bool(enabled)})

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
    before = dict(_attention)
    _set_attention(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _set_attention(**before)


def is_flash_attention_available():
    """Whether attention in blocks, which does not keep the weights, can run on a device here."""
    return _native.cuda.device_count() > 0


def is_ck_sdpa_available():
    """Whether the build has AMD's attention."""
    return False


class SDPAParams:
    """The arguments of one attention, to ask what could compute it."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa=False):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params, debug=False):
    """Whether attention in blocks computes it on tensor cores: halves on the device, in rows of a multiple of 8 elements and at most 128, without a mask."""
    width = params.query.size(-1)
    rows = width % 8 == 0 and width <= 128 and width == params.value.size(-1)
    halves = params.query.dtype in (_native.float16, _native.bfloat16)
    return _in_blocks(params) and params.attn_mask is None and rows and halves


def can_use_efficient_attention(params, debug=False):
    """Whether attention in blocks computes it: tensors on the device, without dropout."""
    return _in_blocks(params)


def _in_blocks(params):
    tensors = (params.query, params.key, params.value)
    fits = all(tensor.is_cuda and tensor.ndim == 4 and tensor.size(-1) <= 256 for tensor in tensors)
    return fits and not params.dropout


def can_use_cudnn_attention(params, debug=False):
    """Whether cuDNN's attention could compute it: it is never used."""
    return False


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


_preferred = {_LinalgBackend: _LinalgBackend.Default, _BlasBackend: _BlasBackend.Cublas}


def _prefer(kind, backend):
    if isinstance(backend, str):
        found = kind.__members__.get(backend.capitalize())
        if found is None:
            raise RuntimeError(
                f"Unknown input value. Choose from: {', '.join(name.lower() for name in kind.__members__)}."
            )
        backend = found
    if backend is not None:
        _preferred[kind] = kind(backend)
    return _preferred[kind]


def preferred_linalg_library(backend=None):
    """The library for linear algebra on CUDA; with an argument, choose it."""
    if backend in ("magma", _LinalgBackend.Magma):
        raise RuntimeError("Cannot set preferred backend to MAGMA if PyTorch has not been compiled with MAGMA.")
    return _prefer(_LinalgBackend, backend)


def preferred_blas_library(backend=None):
    """The library for products on CUDA; with an argument, choose it."""
    return _prefer(_BlasBackend, backend)


class _PlanCache:
    """cuFFT's plans of one device: how many are kept (`size`), at most how many (`max_size`), `clear()`. Index it with a device for another's.

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
