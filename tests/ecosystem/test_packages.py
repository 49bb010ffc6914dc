"""Packages that say `import torch`, unmodified, on cresset: one program each.

`tools/ecosystem.sh` makes the environment for it: cresset adopted, the packages from requirements.txt, no PyTorch.
There nothing is skipped. Elsewhere a program runs where its package happens to be installed, by `cresset run`, which
hides a PyTorch beside it.
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
ADOPTED = "CRESSET_ECOSYSTEM" in os.environ


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem.removesuffix("_program"))
def test_the_package_runs(program):
    package = program.stem.removesuffix("_program")
    if not ADOPTED and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")]),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "2",
    }
    command = [str(program)] if ADOPTED else ["-m", "cresset", "run", str(program)]
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1800 if "CRESSET_LONG" in os.environ else 300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
