"""Where cuFFT and cuSOLVER are not installed, what they compute is computed on the CPU, with a warning."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from emulator import build

import cresset

PROGRAM = """
import warnings
import cresset as torch

matrix, signal = torch.tensor([[2.0, 1.0], [0.0, 4.0]]), torch.arange(4.0)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        inverse, spectrum = torch.linalg.inv(matrix.cuda()), torch.fft.fft(signal.cuda())
assert inverse.is_cuda and spectrum.is_cuda
torch.testing.assert_close(inverse.cpu(), torch.linalg.inv(matrix))
torch.testing.assert_close(spectrum.cpu(), torch.fft.fft(signal))
for words in ("cuFFT is not there", "cuSOLVER is not there"):
    assert sum(words in str(warning.message) for warning in told) == 1, (words, [str(w.message) for w in told])
"""


def test_the_cpu_stands_in(tmp_path):
    if problem := build.problem():
        pytest.skip(problem)
    if cresset.cuda.is_available() or importlib.util.find_spec("nvidia"):
        pytest.skip("NVIDIA's libraries are installed here")
    for file in Path(build.build()).iterdir():
        if not file.name.startswith(("libcufft", "libcusolver")):
            (tmp_path / file.name).symlink_to(file)
    environment = dict(os.environ, CRESSET_CUDA_LIBRARIES=str(tmp_path), CRESSET_EMULATOR_PROTECT="1")
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(cresset.cuda.is_available(), reason="there is a driver")
@pytest.mark.parametrize(
    "text, said",
    [(None, "was not found"), ("x" * 99, "cannot be opened: .*: invalid ELF header")],
    ids=["none", "broken"],
)
def test_why_there_is_no_device(tmp_path, text, said):
    """A file that is not there is no news in each of the folders; one that cannot be opened is."""
    if text:
        (tmp_path / "libcuda.so.1").write_text(text)
    program = "import cresset\ntry: cresset.ones(2, device='cuda')\nexcept AssertionError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, CRESSET_CUDA_LIBRARIES=str(tmp_path)), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    start = "Torch not compiled with CUDA enabled, or no device: no NVIDIA driver: libcuda.so.1"
    assert re.fullmatch(f"{start} {said}\n", done.stdout)
