"""The compiler of the system ($CXX, or g++), for loops that are printed while a program runs.

What was compiled is kept in $CRESSET_CACHE (by default ~/.cache/cresset) under the hash of all that went into it, and
of what came out: a file that was cut short or changed is compiled anew. CRESSET_COMPILER=none does without a compiler.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import warnings
from pathlib import Path

from ... import _native

HEADERS = (
    "base/fused_multiply_add.h",
    "base/float_bits.h",
    "base/exponentials.h",
    "base/circular_functions.h",
    "base/error_function.h",
    "base/vector_math.h",
    "base/integer_math.h",
    "base/special_math.h",
    "base/polynomials.h",
    "base/complex_arithmetic.h",
    "base/complex_math.h",
    "dispatch/pointwise.h",
    "dispatch/pointwise_loop.h",
)
# As in CMakeLists.txt: contraction is off, so that every way to compile a formula gives the same bits.
FLAGS = ("-std=c++20", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno",
    "-fno-trapping-math")  # fmt: skip
LEVEL_FLAGS = {
    "baseline": ("-DCRESSET_LEVEL=baseline",),
    "avx2": ("-DCRESSET_LEVEL=avx2", "-mavx2", "-mfma", "-mf16c"),
    "avx512": ("-DCRESSET_LEVEL=avx512", "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma",
        "-mf16c", "-mprefer-vector-width=512"),
}  # fmt: skip


def is_wanted():
    return os.environ.get("CRESSET_COMPILER") != "none"


def find():
    """The path of the compiler; None where there is none, or none is wanted."""
    if not is_wanted():
        return None
    return shutil.which(os.environ.get("CRESSET_COMPILER") or os.environ.get("CXX") or "g++")


def load(source, compiler, run=subprocess.run):
    """The library made of this C++ text, from the cache if it is there. `run` starts the compiler like
    subprocess.run."""
    headers = _headers()
    level = LEVEL_FLAGS[_native.build_info()["isa"]] if platform.machine() in ("x86_64", "AMD64") else ()
    flags = (*FLAGS, *level)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    texts = ((headers / name).read_text(encoding="utf-8") for name in HEADERS)
    name = _hash("\0".join([source, compiler, version, " ".join(flags), *texts]).encode())
    folder = _cache()
    path = _find_whole(folder, name)
    if path is None:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            text, made = Path(work, "loops.cpp"), Path(work, "loops.so")
            text.write_text(source, encoding="utf-8")
            command = [compiler, *flags, f"-I{headers}", "-o", str(made), str(text)]
            run(command, capture_output=True, text=True, check=True)
            path = folder / f"{name}-{_hash(made.read_bytes())}.so"
            made.replace(path)  # whole or not at all, for others that compile the same
    return ctypes.CDLL(str(path))


def _hash(data):
    return hashlib.sha256(data).hexdigest()


def _find_whole(folder, name):
    """The file of this name in the cache whose contents are what was written there."""
    for path in folder.glob(f"{name}-*.so"):
        if _hash(path.read_bytes()) == path.stem.rpartition("-")[2]:
            return path
        warnings.warn(f"cresset: {path} in the cache is damaged; it is compiled anew", stacklevel=3)
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def _headers():
    """The folder with the headers: in the installed package, or in the source tree."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "include", package.parents[1] / "native"):
        if all((folder / name).is_file() for name in HEADERS):
            return folder
    raise RuntimeError(
        "cresset: the headers for compiled formulas are missing; install the package again, or set "
        "CRESSET_COMPILER=none"
    )


def _cache():
    """The folder of compiled loops. What lies there is loaded and run, so that nobody else may write to it."""
    folder = Path(
        os.environ.get("CRESSET_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cresset"
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise RuntimeError(
            f"cresset: the cache folder {folder} belongs to another user; set CRESSET_CACHE to one of your own"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder
