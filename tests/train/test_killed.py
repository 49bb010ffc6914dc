"""A training process that is killed at random instants, and goes on, ends with the weights of one that was left
alone."""

import importlib.util
from pathlib import Path

import pytest


@pytest.mark.slow
def test_five_kills_change_no_bit():
    path = Path(__file__).resolve().parents[2] / "tools" / "kill_training.py"
    spec = importlib.util.spec_from_file_location("kill_training", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    kills, runs = tool.kill_training(5, seed=3, workers=1)
    assert kills == 5 and runs >= 1
