"""Where NVIDIA's libraries lie when they were installed as Python packages (the extra `cresset[cuda]`)."""

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
