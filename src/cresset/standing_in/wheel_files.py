"""The files of the distribution `torch` that hands over to cresset. Uses the standard library only: packaging/torch
builds a wheel with it, too.
"""

import os

VERSION = "2.13.0+cresset"
INFO = f"torch-{VERSION}.dist-info"

# PyTorch brings a second package, whose older names are in cresset._functorch.package.
FUNCTORCH = '''"""functorch is cresset's here: see torch/__init__.py, which puts cresset in PyTorch's place."""

import importlib
import sys

import torch  # noqa: F401

sys.modules[__name__] = importlib.import_module("cresset._functorch.package")
'''


def contents():
    """The files but for RECORD: {path: text}. The command torchrun is not among them: cresset itself brings it."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_package.txt"), encoding="utf-8") as file:
        package = file.read()
    metadata = {
        "Metadata-Version": "2.1",
        "Name": "torch",
        "Version": VERSION,
        "Summary": "cresset in the place of PyTorch: hands over to the package cresset",
        "License": "Apache-2.0",
        "Requires-Python": ">=3.11",
        "Requires-Dist": "cresset",
    }
    wheel = {"Wheel-Version": "1.0", "Generator": "cresset", "Root-Is-Purelib": "true", "Tag": "py3-none-any"}
    return {
        "torch/__init__.py": package,
        "functorch/__init__.py": FUNCTORCH,
        f"{INFO}/METADATA": _lines(metadata),
        f"{INFO}/WHEEL": _lines(wheel),
        f"{INFO}/top_level.txt": "functorch\ntorch\n",
    }


def _lines(fields):
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def record(files):
    """The text of RECORD: each file with its hash and size."""
    import base64
    import hashlib

    lines = []
    for path, text in files.items():
        data = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{INFO}/RECORD,,"]) + "\n"
