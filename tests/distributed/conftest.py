"""Jobs of several processes for tests."""

import os
import subprocess
import sys
import textwrap

import pytest

import cresset
from cresset.distributed.engines import mpi

SOURCES = os.path.dirname(os.path.dirname(cresset.__file__))


class Job:
    """A finished job: its exit status and what it printed."""

    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr


@pytest.fixture
def job(launched):
    """job(program, processes=2, options=()) runs a program in several processes by torchrun; with MPI between them."""

    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    return launched


@pytest.fixture
def launched(tmp_path):
    """The same without MPI."""

    def run(program, processes=2, options=(), seconds=120):
        file = tmp_path / "program.py"
        file.write_text("import cresset as torch\nimport cresset.distributed as dist\n" + textwrap.dedent(program))
        command = [
            sys.executable,
            "-m",
            "cresset.distributed.run",
            "--standalone",
            f"--nproc-per-node={processes}",
            *options,
        ]
        path = os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "FOLDER": str(tmp_path)}
        done = subprocess.run([*command, str(file)], env=environment, capture_output=True, text=True, timeout=seconds)
        return Job(done)

    return run
