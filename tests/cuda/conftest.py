"""The modules beside the tests of CUDA can be imported by their names; `cuda` is a device, emulated where there is
none.
"""

import ctypes
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def has_real_device():
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return False
    name = ctypes.create_string_buffer(100)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return False
    return (
        driver.cuDeviceGetName(name, 100, 0) == 0 and name.value != b"Emulated GPU"
    )  # which test_emulator.py may have opened


@pytest.fixture(scope="session")
def cuda_device():
    """A device that cresset works on: a GPU, or the emulated one, which has to be chosen before the process first asks
    for CUDA.
    """
    from emulator import build

    from cresset import _native

    if not has_real_device():
        if build.problem():
            pytest.skip(build.problem())
        os.environ["CRESSET_CUDA_LIBRARIES"] = str(build.build())
    if problem := _native.cuda.problem():
        pytest.skip(f"CUDA was asked for before the emulator was chosen: {problem}")
    return "cuda"


@pytest.fixture
def cuda(cuda_device):
    """The device; operators without a kernel raise instead of going to the CPU."""
    from cresset import _native

    _native.cuda.refuse_host(True)
    yield cuda_device
    _native.cuda.refuse_host(False)


@pytest.fixture
def cuda_with_host(cuda_device, recwarn):
    """The device; operators without a kernel are computed on the CPU."""
    return cuda_device
