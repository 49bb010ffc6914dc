"""Runs tests/cuda/device on the emulated GPU, in a process of its own: CUDA is looked for once in a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from emulator import build

import cresset

HERE = Path(__file__).resolve().parent
FILES = sorted(path.name for path in (HERE / "device").glob("test_*.py"))


@pytest.mark.skipif(cresset.cuda.is_available(), reason="there is a real device: tests/cuda/device runs on it")
@pytest.mark.parametrize("file", FILES)
def test_device_tests_pass_on_the_emulator(file, tmp_path_factory):
    if problem := build.problem():
        pytest.skip(problem)
    environment = dict(os.environ, CRESSET_CUDA_LIBRARIES=str(build.build()), CRESSET_EMULATOR_PROTECT="1")
    environment["CRESSET_CACHE"] = str(tmp_path_factory.getbasetemp() / "kernels")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE / "device" / file)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
