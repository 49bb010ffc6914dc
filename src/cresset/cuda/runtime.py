"""torch.cuda.cudart(): the functions of the CUDA runtime library that programs call, through the driver. There is no
runtime library here.
"""

import ctypes
import enum

from .. import _native
from .absent import require
from .devices import current_device, device_index
from .libraries import driver

_native_cuda = _native.cuda


class cudaError(enum.IntEnum):
    """Codes of the CUDA runtime. The driver's are the same numbers."""

    success = 0
    errorInvalidValue = 1
    errorMemoryAllocation = 2
    errorInvalidDevice = 101
    errorHostMemoryAlreadyRegistered = 712
    errorHostMemoryNotRegistered = 713
    errorNotSupported = 801

    @classmethod
    def _missing_(cls, value):
        code = int.__new__(cls, value)
        code._name_, code._value_ = f"error{value}", value
        return code


def _call(name, *arguments):
    """Call a function of the driver with the current device's context."""
    _native_cuda.start(current_device())
    function = getattr(driver(), name, None)
    return cudaError(function(*arguments) if function is not None else 801)


def cudaMemGetInfo(device=None):
    """(free bytes, all bytes) of a device."""
    require()
    return _native_cuda.memory_info(device_index(device))


def cudaProfilerStart():
    """Let a profiler that watches this process collect."""
    return _call("cuProfilerStart")


def cudaProfilerStop():
    """Let a profiler that watches this process stop collecting."""
    return _call("cuProfilerStop")


def cudaHostRegister(ptr, size, flags):
    """Lock the pages of memory that somebody else made, so that copies between it and the device can be
    asynchronous."""
    code = _call("cuMemHostRegister_v2", ctypes.c_void_p(ptr), ctypes.c_size_t(size), ctypes.c_uint(flags))
    if code == cudaError.success:
        _native_cuda.note_registered(ptr, size)
    return code


def cudaHostUnregister(ptr):
    """Unlock what cudaHostRegister has locked."""
    code = _call("cuMemHostUnregister", ctypes.c_void_p(ptr))
    if code == cudaError.success:
        _native_cuda.forget_registered(ptr)
    return code


def cudaStreamCreate(ptr):
    """Make a stream and write its handle to the address `ptr`."""
    ctypes.c_void_p.from_address(ptr).value = _native_cuda.stream_create(current_device(), 0)
    return cudaError.success


def cudaStreamDestroy(stream):
    """Destroy a stream of cudaStreamCreate."""
    _native_cuda.stream_destroy(current_device(), stream)
    return cudaError.success


def cudaGetErrorString(error):
    """The driver's words for a code."""
    text = ctypes.c_char_p()
    if driver().cuGetErrorString(int(error), ctypes.byref(text)) != 0 or text.value is None:
        return "unrecognized error code"
    return text.value.decode()
