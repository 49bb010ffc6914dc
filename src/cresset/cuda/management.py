"""What NVIDIA's management library (NVML, part of the driver) tells of a device: load, temperature, power, clock, and
who uses its memory.
"""

import ctypes
import functools

from .. import _native
from .devices import device_index, get_device_properties
from .libraries import open_library

SENSOR_OF_GPU, CLOCK_OF_PROCESSORS, INSUFFICIENT_SIZE = 0, 1, 7


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


@functools.cache
def _library():
    if _native.cuda.device_count() == 0:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")
    library, _ = open_library("libnvidia-ml.so.1")
    if library is None:
        raise ModuleNotFoundError(
            "libnvidia-ml.so.1, NVIDIA's management library, was not found; it comes with the driver"
        )
    _check(library.nvmlInit_v2(), "nvmlInit_v2")
    return library


def _check(code, what):
    if code:
        raise RuntimeError(f"{what}: NVIDIA's management library answered with error {code}")


def _ask(name, device, *arguments, into):
    """Call a function of the library for a device; gives `into`, which it has filled."""
    library, handle = _library(), ctypes.c_void_p()
    uuid = f"GPU-{get_device_properties(device_index(device)).uuid}"  # its numbers are not ours: CUDA_VISIBLE_DEVICES
    _check(library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)), "nvmlDeviceGetHandleByUUID")
    _check(getattr(library, name)(handle, *arguments, ctypes.byref(into)), name)
    return into


def utilization(device=None):
    """The share of the last moments in which kernels ran, in percent."""
    return _ask("nvmlDeviceGetUtilizationRates", device, into=Utilization()).gpu


def memory_usage(device=None):
    """The share of the last moments in which memory was read or written, in percent."""
    return _ask("nvmlDeviceGetUtilizationRates", device, into=Utilization()).memory


def temperature(device=None):
    """The temperature of a device, in degrees Celsius."""
    return _ask("nvmlDeviceGetTemperature", device, ctypes.c_int(SENSOR_OF_GPU), into=ctypes.c_uint()).value


def power_draw(device=None):
    """The power of a device, in milliwatts."""
    return _ask("nvmlDeviceGetPowerUsage", device, into=ctypes.c_uint()).value


def clock_rate(device=None):
    """The clock of a device's processors, in MHz."""
    return _ask("nvmlDeviceGetClockInfo", device, ctypes.c_int(CLOCK_OF_PROCESSORS), into=ctypes.c_uint()).value


def device_memory_used(device=None):
    """The bytes of a device's memory that all processes use."""
    return _ask("nvmlDeviceGetMemoryInfo", device, into=Memory()).used


def list_gpu_processes(device=None):
    """The processes that use a device and how much memory each has, as text."""
    try:
        library, handle = _library(), ctypes.c_void_p()
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    index = device_index(device)
    _check(
        library.nvmlDeviceGetHandleByUUID(f"GPU-{get_device_properties(index).uuid}".encode(), ctypes.byref(handle)),
        "nvmlDeviceGetHandleByUUID",
    )
    count = ctypes.c_uint(0)
    code = library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), None)
    processes = []
    while code == INSUFFICIENT_SIZE:  # now the number is known, unless others have come
        processes = (Process * count.value)()
        code = library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), processes)
    _check(code, "nvmlDeviceGetComputeRunningProcesses_v3")
    lines = [
        f"process {process.number:>10d} uses {process.bytes / 2**20:>12.3f} MB GPU memory"
        for process in processes[: count.value]
    ]
    return "\n".join([f"GPU:{index}", *(lines or ["no processes are running"])])
