"""`python -m cresset.utils.collect_env`: what a bug report should say about the machine. Looks, and loads nothing
heavy.
"""

import ctypes.util
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

from .. import __config__

__all__ = ["facts", "get_nvidia_driver_version", "get_pretty_env_info", "main", "run"]

# What reports are often about besides cresset: packages that work with it, and variables that change how it runs.
PACKAGES = {"NumPy": "numpy", "SciPy": "scipy", "Pillow": "pillow", "ONNX": "onnx", "safetensors": "safetensors",
            "transformers": "transformers"}  # fmt: skip
VARIABLES = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTHONPATH")


def cuda():
    """The driver, if there is one; its library is looked for, not opened."""
    version = Path("/proc/driver/nvidia/version")
    library = ctypes.util.find_library("cuda")
    if version.exists():
        words = version.read_text().splitlines()[0].split()
        number = next((word for word in words if word[0].isdigit() and "." in word), "of unknown version")
        return f"driver {number}, {library or 'but libcuda was not found'}"
    return f"{library}, but no driver is loaded" if library else "none found"


def distribution(name):
    """The installed version of a package, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def memory():
    """How much memory the machine has."""
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def processor():
    """The processor's name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1] for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    )
    return names[0].strip() if names else platform.processor() or platform.machine()


def facts():
    """Everything, as a dictionary from a short title to a string."""
    implementation = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        **__config__.facts(),
        "Python": f"{implementation}, {sys.maxsize.bit_length() + 1} bits",
        "platform": platform.platform(),
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
        "processor": processor(),
        "memory": memory(),
        "CUDA": cuda(),
        **{title: distribution(name) for title, name in PACKAGES.items()},
        **{name: os.environ.get(name, "not set") for name in VARIABLES},
    }


def get_pretty_env_info():
    """The report as one string."""
    return __config__.lines(facts())


def run(command):
    """Run a command (a list, or one line without a shell): its exit status, output and errors."""
    try:
        done = subprocess.run(
            shlex.split(command) if isinstance(command, str) else command, capture_output=True, text=True
        )
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_nvidia_driver_version(run_lambda=run):
    """The version of NVIDIA's driver, or None."""
    text = cuda()
    return text.split()[1].rstrip(",") if text.startswith("driver ") else None


def main():
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
