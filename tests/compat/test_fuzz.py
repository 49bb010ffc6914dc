"""The short form of fuzz/calls.py: some thousand random calls answer as PyTorch does, or refuse in good order."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("fuzz")))
import calls  # noqa: E402


def test_random_calls_answer_as_pytorch_does():
    findings, _, totals = calls.run(6000, "short")
    assert not findings, "\n".join(text for _, text in findings)
    assert totals["both"] > 3000  # most calls make sense, or the comparison says little
