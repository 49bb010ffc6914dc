"""PyTorch's torch.cpu: the CPU under the names that other devices have."""

import contextlib
import types

from .. import _native

__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "get_capabilities",
    "is_available", "is_initialized", "set_device",
    "stream", "synchronize",
]  # fmt: skip


def is_available():
    """Whether there is a CPU. There is."""
    return True


def is_initialized():
    """Whether the CPU was used already."""
    return True


def device_count():
    """How many CPU devices there are: one, whatever its cores."""
    return 1


def current_device():
    """The current device: "cpu"."""
    return "cpu"


def set_device(device):
    """Nothing: there is one CPU device."""


def synchronize(device=None):
    """Nothing: operations on the CPU are complete when they return."""


def get_capabilities():
    """What the processor can do, by name.

    >>> isinstance(cresset.cpu.get_capabilities()["avx2"], bool)
    True
    """
    import platform

    flags = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        flags = next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), set())
    names = {
        "sse4_1": "sse4_1", "sse4_2": "sse4_2", "avx": "avx", "avx2": "avx2", "fma3": "fma", "f16c": "f16c",
        "bmi": "bmi1", "bmi2": "bmi2", "aes": "aes", "sha": "sha_ni",
        "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_bw": "avx512bw", "avx512_dq": "avx512dq",
        "avx512_vl": "avx512vl", "avx512_vnni": "avx512_vnni",
        "avx512_bf16": "avx512_bf16", "avx512_fp16": "avx512_fp16", "amx_tile": "amx_tile", "amx_bf16": "amx_bf16",
        "amx_int8": "amx_int8", "avx_vnni": "avx_vnni",
    }  # fmt: skip
    found = {name: flag in flags for name, flag in names.items()}
    return types.MappingProxyType({"architecture": platform.machine(), **found})


def _is_avx2_supported():
    return _native.build_info()["isa"] in ("avx2", "avx512")


def _is_avx512_supported():
    return _native.build_info()["isa"] == "avx512"


def _is_vnni_supported():
    """Whether the processor multiplies bytes and adds the products in one instruction."""
    return get_capabilities()["avx512_vnni"]


def _is_amx_tile_supported():
    """Whether the processor has registers that hold tiles of matrices."""
    return get_capabilities()["amx_tile"]


class Stream:
    """A stream on the CPU: work is complete when it returns."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self):
        pass

    def wait_event(self, event):
        pass


class Event:
    """An event on the CPU: it has always happened."""

    def query(self):
        return True

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass


_current = [Stream()]


def current_stream(device=None):
    """The stream that work goes to."""
    return _current[-1]


class StreamContext(contextlib.AbstractContextManager):
    """Inside, a stream is the current one."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            _current.append(self.stream)

    def __exit__(self, *_):
        if self.stream is not None:
            _current.pop()


def stream(stream):
    """Inside, `stream` is the current one."""
    return StreamContext(stream)


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module 'cresset.cpu' has no attribute {name!r}")
