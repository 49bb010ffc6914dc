"""`torch.version`: which cresset this is, and what it was built with. CUDA is opened at run time: its version is that
of the driver at hand.
"""

from . import _native

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]  # noqa: F822 (cuda: see __getattr__)

__version__ = "0.1.0"
debug = False
git_version = "unknown"  # a released package does not know its commit
hip = rocm = xpu = None


def __getattr__(name):
    if name == "cuda":  # "13.0"; None without a device
        if not _native.cuda.device_count():
            return None
        number = _native.cuda.driver_version()
        return f"{number // 1000}.{number // 10 % 100}"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
