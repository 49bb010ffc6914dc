"""autocast: the region in which operations choose their precision. What each one chooses is in ops/autocast.py; the
call path does it.
"""

import functools
import threading
import warnings

import cresset
from cresset import _native
from cresset.ops.autocast import read_formulas

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_NATIVE_DEVICES = {"cpu": 0, "cuda": 1}
# Device types that PyTorch knows autocast for and that have no backend here: settings are kept, and have no effect.
_OTHER_DTYPES = {
    "xpu": "float16", "mps": "float16", "hpu": "bfloat16", "mtia": "float16", "ipu": "float16", "xla": "bfloat16",
    "privateuseone": "float16", "maia": "bfloat16",
}  # fmt: skip


class _OtherDevices(threading.local):
    def __init__(self):
        self.enabled = dict.fromkeys(_OTHER_DTYPES, False)
        self.dtypes = {name: getattr(_native, dtype) for name, dtype in _OTHER_DTYPES.items()}


_others = _OtherDevices()


def _known(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _NATIVE_DEVICES and device_type not in _OTHER_DTYPES:
        if device_type in ("meta", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "lazy", "vulkan"):
            raise RuntimeError(
                f"autocast: there is no low precision for the device type {device_type!r} (unsupported scalarType)"
            )
        cresset.device(device_type)  # its error names the device types there are
        raise RuntimeError(
            f"Expected one of {', '.join([*_NATIVE_DEVICES, *_OTHER_DTYPES])} device type, got {device_type!r}"
        )
    return device_type


def is_autocast_available(device_type):
    """Whether the device type has autocast.

    >>> cresset.amp.is_autocast_available("cpu")
    True
    """
    if device_type == "meta":
        return False
    return bool(_known(device_type))


# ---------------------------------------------------------------- the state of this thread


def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on for a device type."""
    if _known(device_type) in _NATIVE_DEVICES:
        return bool(_native.autocast_mask() >> _NATIVE_DEVICES[device_type] & 1)
    return _others.enabled[device_type]


def set_autocast_enabled(device_type, enabled=None):
    """Turn autocast on or off for a device type; set_autocast_enabled(True) is CUDA's."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if _known(device_type) not in _NATIVE_DEVICES:
        _others.enabled[device_type] = bool(enabled)
        return
    if enabled and device_type == "cuda":
        read_formulas()
    bit = 1 << _NATIVE_DEVICES[device_type]
    mask = _native.autocast_mask()
    _native.set_autocast_mask(mask | bit if enabled else mask & ~bit)


def get_autocast_dtype(device_type):
    """The low precision of a device type.

    >>> cresset.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    if _known(device_type) in _NATIVE_DEVICES:
        return _native.autocast_dtype(_NATIVE_DEVICES[device_type])
    return _others.dtypes[device_type]


def set_autocast_dtype(device_type, dtype):
    """Choose the low precision of a device type."""
    if _known(device_type) in _NATIVE_DEVICES:
        _native.set_autocast_dtype(_NATIVE_DEVICES[device_type], dtype)
    else:
        _others.dtypes[device_type] = dtype


is_autocast_cache_enabled = _native.autocast_keeps_casts
set_autocast_cache_enabled = _native.set_autocast_keeps_casts
autocast_increment_nesting = _native.autocast_increment_nesting
autocast_decrement_nesting = _native.autocast_decrement_nesting
clear_autocast_cache = _native.clear_autocast_cache


def _deprecated(name, instead, function):
    def old(*args):
        warnings.warn(
            f"torch.{name}() is deprecated. Please use torch.{instead} instead.", DeprecationWarning, stacklevel=2
        )
        return function(*args)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"The old form of {instead}."
    return old


_old_names = {}
for _word, _device in {"cpu": "cpu", "gpu": "cuda", "ipu": "ipu", "xla": "xla"}.items():
    for _pattern, _instead, _function in (
        ("get_autocast_{}_dtype", "get_autocast_dtype('{}')", get_autocast_dtype),
        ("set_autocast_{}_dtype", "set_autocast_dtype('{}', dtype)", set_autocast_dtype),
        ("is_autocast_{}_enabled", "is_autocast_enabled('{}')", is_autocast_enabled),
        ("set_autocast_{}_enabled", "set_autocast_enabled('{}', enabled)", set_autocast_enabled),
    ):
        _old_names[_pattern.format(_word)] = _deprecated(
            _pattern.format(_word), _instead.format(_device), functools.partial(_function, _device)
        )
for _name in ("is_autocast_gpu_enabled", "set_autocast_gpu_enabled"):
    del _old_names[_name]  # PyTorch has no such names: is_autocast_enabled() is CUDA's
globals().update(_old_names)


# ---------------------------------------------------------------- the region


def autocast_decorator(autocast_instance, func):
    """`func` with its calls inside the region."""

    @functools.wraps(func)
    def decorate_autocast(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """A region, or a decorator, in which operations run in the precision that suits them: products in the low one,
    losses in float32.

    Weights keep their dtype; their low-precision copies are kept until the outermost region ends. Backward belongs
    outside of the region.

    Args:
        device_type: "cpu" or "cuda".
        dtype: the low precision; bfloat16 on the CPU, float16 on CUDA by default.
        enabled: False makes a region without autocast.
        cache_enabled: keep the low-precision copies of weights.

    >>> with cresset.autocast("cpu"):
    ...     (cresset.ones(2, 2) @ cresset.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else _native.as_dtype(dtype)
        self.device = device_type
        self.custom_backend_name = "privateuseone"
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not cresset.cuda.is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled and device_type in ("cpu", "cuda") and self.fast_dtype not in (cresset.bfloat16, cresset.float16):
            name = device_type.upper()
            warnings.warn(
                (
                    f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast "
                    "only supports dtypes of torch.bfloat16, torch.float16 currently."
                ),
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self):
        self.prev_cache_enabled = is_autocast_cache_enabled()
        self.prev = is_autocast_enabled(self.device)
        self.prev_fastdtype = get_autocast_dtype(self.device)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_cache_enabled(self._cache_enabled)
        autocast_increment_nesting()
        return self

    def __exit__(self, *_):
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. As a block it is "
                "`with autocast(...):`, as a decorator `@autocast(...)`"
            )
        return autocast_decorator(self, func)


def _enter_autocast(*vals):
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    mode.__exit__(None, None, None)


# ---------------------------------------------------------------- autograd.Function


def _cast(value, device_type, dtype):
    """The tensors in `value`, also in containers, in another floating-point precision; float64 stays."""
    if isinstance(value, cresset.Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not cresset.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For the forward of an autograd.Function: remember the autocast state for backward, or run in one dtype.

    Args:
        device_type: "cpu" or "cuda".
        cast_inputs: inside an autocast region, run with floating-point inputs of this dtype and without autocast.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args, **kwargs):
        context, active = args[0], is_autocast_enabled(device_type)
        context._dtype = get_autocast_dtype(device_type)
        context._fwd_used_autocast = active and cast_inputs is None
        if not active or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd=None, *, device_type):
    """For the backward of an autograd.Function whose forward has custom_fwd: run in the same autocast state."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args, **kwargs):
        with autocast(device_type=device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
