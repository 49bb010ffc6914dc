"""The root of the package holds what programs import from PyTorch's root, and little else; everything of our own has a
room.
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "cresset"

# Modules that PyTorch has, under the same names.
OF_PYTORCH = {
    "__config__.py", "__future__.py", "__init__.py", "_custom_ops.py", "_jit_internal.py",
    "_classes.py", "_guards.py", "_ops.py",
    "_tensor.py",
    "_tensor_str.py", "_utils.py", "_VF.py", "_vmap_internals.py",
    "accelerator.py", "fft.py", "functional.py", "futures.py", "hub.py", "library.py", "monitor.py",
    "mps.py", "mtia.py",
    "overrides.py", "package.py", "quantization.py", "random.py", "return_types.py", "special.py", "storage.py",
    "torch_version.py", "types.py", "version.py", "xpu.py",
}  # fmt: skip

# Of our own: `python -m cresset`, and a file format that programs import as a module.
OUR_OWN = {"__main__.py", "py.typed", "safetensors.py"}


def test_the_root_has_the_files_that_are_listed_and_no_others():
    made_by_the_build = (".so", ".pyi", ".pyc")
    found = {file.name for file in PACKAGE.iterdir() if file.is_file() and not file.name.endswith(made_by_the_build)}
    assert found == OF_PYTORCH | OUR_OWN


def test_every_room_says_in_its_first_line_what_it_is_for():
    for folder in (folder for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()):
        assert (folder / "__init__.py").read_text().startswith('"""'), folder.name


def test_files_of_the_project_have_plain_names():
    """A program that takes an object for a path leaves a file with its description behind."""
    assert not [entry.name for entry in PACKAGE.parents[1].iterdir() if not re.fullmatch(r"[\w.+-]+", entry.name)]
