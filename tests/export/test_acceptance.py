"""The checks of acceptance.py hold here."""

import sys
from pathlib import Path

import pytest

import cresset

sys.path.insert(0, str(Path(__file__).parent))
from acceptance import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_it_holds(name):
    cresset.manual_seed(0)
    CHECKS[name](cresset)
