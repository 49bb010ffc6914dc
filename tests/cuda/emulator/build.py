"""Build the emulated libraries of NVIDIA: `python build.py FOLDER` prints the folder in which they are.

Point CRESSET_CUDA_LIBRARIES at it and `device="cuda"` runs on the CPU. The libraries are kept by the content of their
sources.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMON = ["-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]

# Each library: its sources, how they are compiled, and its other names.
LIBRARIES = {
    "libcuda.so.1": (
        ["device", "memory", "copies", "streams", "queues", "launch", "block", "fibers", "faults"],
        ["-O1", "-Wl,-soname,libcuda.so.1"],
        ["libcuda.so"],
    ),
    "libnvrtc.so": (
        ["nvrtc", "compiler", "program_text"],
        ["-O1", "-Wl,-soname,libnvrtc.so.13"],
        ["libnvrtc.so.13"],
    ),
    "libcublasLt.so": (
        ["cublaslt", "matrix_product"],
        [
            "-O2",
            "-ftree-vectorize",
            "-ffp-contract=off",
            "-fcx-limited-range",
            "-Wl,-soname,libcublasLt.so.13",
            "-Wl,-rpath,$ORIGIN",
        ],
        ["libcublasLt.so.13"],
    ),
    "libcudnn.so.9": (
        ["cudnn", "cudnn_operations"],
        ["-O2", "-ffp-contract=off", "-Wl,-soname,libcudnn.so.9", "-Wl,-rpath,$ORIGIN"],
        ["libcudnn.so"],
    ),
    "libcufft.so.12": (["cufft"], ["-O2", "-Wl,-soname,libcufft.so.12", "-Wl,-rpath,$ORIGIN"], ["libcufft.so"]),
    "libcublas.so.13": (
        ["cublas", "dense"],
        ["-O2", "-fcx-limited-range", "-Wl,-soname,libcublas.so.13", "-Wl,-rpath,$ORIGIN"],
        ["libcublas.so"],
    ),
    "libcusolver.so.12": (
        ["cusolver", "dense"],
        ["-O2", "-fcx-limited-range", "-Wl,-soname,libcusolver.so.12", "-Wl,-rpath,$ORIGIN"],
        ["libcusolver.so"],
    ),
    "libcupti.so.13": (
        ["cupti"],
        ["-O1", "-Wl,-soname,libcupti.so.13", "-Wl,-rpath,$ORIGIN"],
        ["libcupti.so"],
    ),
    "libnvidia-ml.so.1": (["management"], ["-O1", "-Wl,-soname,libnvidia-ml.so.1"], []),
}
# Those that submit work to the emulated driver.
LINKED = ("libcublasLt.so", "libcudnn.so.9", "libcufft.so.12", "libcublas.so.13", "libcusolver.so.12", "libcupti.so.13")


def compiler() -> str:
    return os.environ.get("CXX") or "g++"


def problem() -> str:
    """Why the emulator cannot be built here; empty if it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the emulator is for Linux on x86-64"
    if not shutil.which(compiler()):
        return f"the emulator needs {compiler()}"
    return ""


def sources() -> list[Path]:
    return sorted(p for p in HERE.rglob("*") if p.suffix in {".cpp", ".h", ".py"} or p.parent.name == "standard")


def digest() -> str:
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    content = hashlib.sha256(version.encode())
    for path in sources():
        content.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    return content.hexdigest()[:16]


def default_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"cresset-emulator-{os.getuid()}"


def build(folder: Path | None = None) -> Path:
    """The folder with the libraries, made under `folder` unless it is there already."""
    ready = Path(folder or default_folder()) / digest()
    if ready.exists():
        return ready
    ready.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=ready.parent))
    try:
        shutil.copytree(HERE / "device", work / "device")
        compile_all(work)
        with contextlib.suppress(OSError):  # somebody else was first
            work.rename(ready)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ready


def compile_all(folder: Path) -> None:
    def start(library):
        names, flags, _ = LIBRARIES[library]
        together = folder / f"{library}.cpp"  # as one file: reading the standard library is most of the work
        together.write_text("".join(f'#include "{HERE / name}.cpp"\n' for name in names))
        uses = [str(folder / "libcuda.so.1")] if library in LINKED else []
        version = f"-DEMULATOR_VERSION={int(digest()[:6], 16)}"
        return subprocess.Popen(
            [
                compiler(),
                *COMMON,
                version,
                *flags,
                str(together),
                *uses,
                "-o",
                str(folder / library),
                "-ldl",
                "-lpthread",
            ]
        )

    # Two at a time.
    statuses = {}
    with start("libnvrtc.so") as beside:
        for library in ("libcuda.so.1", *LINKED, "libnvidia-ml.so.1"):
            with start(library) as process:
                statuses[library] = process.wait()
        statuses["libnvrtc.so"] = beside.wait()
    for library, status in statuses.items():
        if status != 0:
            raise RuntimeError(f"{library} could not be compiled")
        for name in LIBRARIES[library][2]:
            (folder / name).symlink_to(library)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
