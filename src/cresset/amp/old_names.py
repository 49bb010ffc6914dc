"""What torch.cuda.amp and torch.cpu.amp offer: autocast and GradScaler for one device, each with its deprecation
warning.
"""

import functools
import warnings

import cresset

from . import autocast_mode, grad_scaler

__all__ = ["CpuAutocast", "CpuGradScaler", "CudaAutocast", "CudaGradScaler", "of_cpu", "of_cuda"]


def _deprecated(old, new):
    warnings.warn(
        f"`torch.{old}(args...)` is deprecated. Please use `torch.{new}` instead.", FutureWarning, stacklevel=3
    )


class CudaAutocast(autocast_mode.autocast):
    """The old form of amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=cresset.float16, cache_enabled=True):
        _deprecated("cuda.amp.autocast", "amp.autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class CpuAutocast(autocast_mode.autocast):
    """The old form of amp.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=cresset.bfloat16, cache_enabled=True):
        _deprecated("cpu.amp.autocast", "amp.autocast('cpu', args...)")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class CudaGradScaler(grad_scaler.GradScaler):
    """The old form of amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("cuda.amp.GradScaler", "amp.GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class CpuGradScaler(grad_scaler.GradScaler):
    """The old form of amp.GradScaler("cpu", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("cpu.amp.GradScaler", "amp.GradScaler('cpu', args...)")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """The old form of amp.custom_fwd(..., device_type="cuda")."""
    _deprecated("cuda.amp.custom_fwd", "amp.custom_fwd(args..., device_type='cuda')")
    return functools.partial(autocast_mode.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)(fwd)


def custom_bwd(bwd):
    """The old form of amp.custom_bwd(..., device_type="cuda")."""
    _deprecated("cuda.amp.custom_bwd", "amp.custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available():
    """Whether mixed precision on CUDA cannot work here."""
    return not cresset.cuda.is_available()


for _kind, _name, _module in (
    (CudaAutocast, "autocast", "torch.cuda.amp.autocast_mode"),
    (CpuAutocast, "autocast", "torch.cpu.amp.autocast_mode"),
    (CudaGradScaler, "GradScaler", "torch.cuda.amp.grad_scaler"),
    (CpuGradScaler, "GradScaler", "torch.cpu.amp.grad_scaler"),
):
    _kind.__name__ = _kind.__qualname__ = _name
    _kind.__module__ = _module

of_cuda = {
    "autocast": CudaAutocast, "GradScaler": CudaGradScaler, "OptState": grad_scaler.OptState, "custom_fwd": custom_fwd,
    "custom_bwd": custom_bwd,
    "amp_definitely_not_available": amp_definitely_not_available,
}  # fmt: skip
of_cpu = {"autocast": CpuAutocast, "GradScaler": CpuGradScaler, "OptState": grad_scaler.OptState}
