"""The checks that fx and export are held to (tests/export/acceptance.py) hold of PyTorch: they ask for nothing else."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
from acceptance import CHECKS

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", CHECKS)
def test_it_holds_of_pytorch(name):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CHECKS[name](torch)
