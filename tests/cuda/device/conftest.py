"""Tests that need a CUDA device: a real one, or the emulator (see ../test_on_emulator.py, which runs them so where
there is none).
"""

import sys
from pathlib import Path

import pytest

import cresset

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = [] if cresset.cuda.is_available() else ["test_*.py"]


@pytest.fixture(autouse=True)
def only_kernels():
    """A missing kernel shows, instead of the operator being computed on the CPU."""
    cresset._native.cuda.refuse_host(True)
    yield
    cresset._native.cuda.refuse_host(False)
    cresset.cuda.synchronize()  # a fault that nobody waited for belongs to this test
