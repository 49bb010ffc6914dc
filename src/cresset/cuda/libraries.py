"""Where NVIDIA's libraries lie: as Python packages (the extra `cresset[cuda]`), where CRESSET_CUDA_LIBRARIES says, or
where the system looks.
"""

import functools
import os
import pathlib
import sys


def package_folders():
    """The folders nvidia/.../lib of the packages on the path."""
    found = []
    for entry in sys.path:
        root = pathlib.Path(entry or ".") / "nvidia"
        if root.is_dir():
            found.extend(str(folder) for folder in sorted(root.glob("*/lib")))
    return found


@functools.cache
def open_library(*names):
    """(the library as ctypes has it, the path or name that was opened), looked for as the native part does; (None, "")
    when it is not there.
    """
    import ctypes  # when it is first needed: programs ask torch.cuda.is_available() and go on

    wished = [folder for folder in os.environ.get("CRESSET_CUDA_LIBRARIES", "").split(":") if folder]
    for folder in [*wished, *package_folders(), "", "/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"]:
        for name in names:
            path = os.path.join(folder, name)
            try:
                return ctypes.CDLL(path), path
            except OSError:
                continue
    return None, ""


def driver():
    """The driver's library, for the few functions that only Python calls."""
    return open_library("libcuda.so.1", "libcuda.so")[0]
