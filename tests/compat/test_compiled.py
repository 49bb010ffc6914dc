"""The short forms of compiled_samples.py and fuzz/compiled.py: compiled regions give eager's bits, errors and side
effects. They compare cresset with itself; the samples are PyTorch's.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_samples_of_operators_have_eagers_bits():
    pytest.importorskip("torch")
    pytest.importorskip("expecttest")  # PyTorch's samples ask for it
    sys.path.insert(0, str(HERE))
    import compiled_samples

    findings, used, _, count = compiled_samples.check(
        "^(add|mul|where|clamp|softmax|exp|nn.functional.(gelu|layer_norm|linear|smooth_l1_loss|conv2d)|cat|sum|pow)$",
        "float32,bfloat16,bool",
        3,
    )
    assert not findings
    assert used > 10 and count > 60


def test_random_programs_run_compiled_as_they_run_eagerly():
    command = [sys.executable, str(HERE / "fuzz" / "compiled.py"), "--seed", "short", "--count", "150"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    steps, calls = map(int, re.search(r"(\d+) steps, \d+ groups of (\d+) calls", done.stdout).groups())
    assert steps > 1500 and calls > 200  # most programs run to their end and compute something late
