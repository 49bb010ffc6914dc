"""`torch.version`: which cresset this is, and what it was built with. CUDA is opened at run time, so it has no version here."""

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = "0.1.0"
debug = False
git_version = "unknown"  # a released package does not know its commit
cuda = hip = rocm = xpu = None
