"""Packages that say `import torch`, unmodified, on cresset: one program each, run where the package is installed.

The environment for it has no PyTorch: install the packages with `pip install` after `cresset adopt`, then run these
    tests there. With PyTorch beside
it the programs run by `cresset run`, which hides it.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*_program.py"))
SOURCES = str(Path(cresset.__file__).parents[1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem.removesuffix("_program"))
def test_the_package_runs(program):
    package = program.stem.removesuffix("_program")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")]),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "cresset", "run", str(program)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
