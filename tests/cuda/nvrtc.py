"""NVIDIA's run-time compiler by ctypes, for tests that compile kernels on machines without a GPU.

It is found where pip puts the package nvidia-cuda-nvrtc (a folder nvidia/ on sys.path).
"""

import ctypes
import functools
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "src" / "cresset" / "cuda" / "kernels"


@functools.cache
def library():
    """The library, or None where there is none."""
    for folder in sys.path:
        for path in sorted(Path(folder or ".").glob("nvidia/*/lib/libnvrtc.so.*")):
            for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
    return None


def compile(source, architecture="sm_90", options=()):
    """The compiled program, or a SyntaxError with the compiler's words."""
    nvrtc, program = library(), ctypes.c_void_p()
    everything = [
        f"--gpu-architecture={architecture}", "--std=c++20", "--fmad=false", "--device-as-default-execution-space",
        "--minimal",
        f"--include-path={KERNELS}", *options,
    ]  # fmt: skip
    if not any(name in text for text in (source, *options) for name in ("dtype_c", "dtype_f8", "omplex")):
        everything.append("-DPLAIN_TYPES")  # as native/cuda/compile.cpp does
    words = (ctypes.c_char_p * len(everything))(*(option.encode() for option in everything))
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None) == 0
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(everything), words)
        if status:
            raise SyntaxError(f"NVRTC says {status}: {_read(program, 'ProgramLog').decode()}")
        return _read(program, "CUBIN" if architecture.startswith("sm") else "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(program, what):
    nvrtc, size = library(), ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, text) == 0
    return text.raw[:-1] if what == "ProgramLog" else text.raw
