"""The short forms of fuzz/calls.py and fuzz/programs.py: random calls and programs give what PyTorch gives, or refuse
in good order.
"""

import os
import re
import subprocess
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


def test_random_programs_run_as_in_pytorch():
    command = [
        sys.executable,
        str(Path(__file__).with_name("fuzz") / "programs.py"),
        "--seed",
        "short",
        "--count",
        "600",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    steps = int(re.search(r"programs: 600 programs, (\d+) steps", done.stdout)[1])
    assert steps > 6000  # most programs run to their end, or the comparison says little
