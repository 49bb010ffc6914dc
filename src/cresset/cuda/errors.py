"""Exceptions of devices."""

import enum


class OutOfMemoryError(RuntimeError):
    """There is not enough memory on the device."""


class AcceleratorError(RuntimeError):
    """The device reported an error."""


class DeferredCudaCallError(Exception):
    """A call that was put off until the backend started has failed."""


class cudaStatus(enum.IntEnum):
    """Codes of the CUDA runtime."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """The CUDA runtime reported an error.

    Args:
        code: its number.
    """

    def __init__(self, code):
        from .runtime import cudaGetErrorString

        super().__init__(f"{cudaGetErrorString(code)} ({int(code)})")


def check_error(res):
    """Raise CudaError unless a code of the runtime says success."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)
