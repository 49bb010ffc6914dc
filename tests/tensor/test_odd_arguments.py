"""No call, however odd, ends the process: thousands of random calls in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("odd_calls.py")


@pytest.mark.parametrize("seed", range(3))
def test_odd_calls_give_a_result_or_an_exception(seed, tmp_path):
    log = tmp_path / "calls.log"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run([sys.executable, "-X", "faulthandler", str(SCRIPT), str(seed), "3000", str(log)], capture_output=True, text=True, timeout=250, env=environment)
    last = log.read_text().splitlines()[-1] if log.exists() else "the start"
    assert ended.returncode == 0, f"ended with {ended.returncode} at {last}\n{ended.stderr[-1500:]}"
    assert ended.stdout.startswith("3000 calls")
