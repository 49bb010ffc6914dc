"""A device is one folder: tests/tensor/fake_device, whose memory nobody can read but the device itself."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "fake_device"
COMPILER = shutil.which("c++") or shutil.which("g++")
# Where a build with -DCRESSET_DEVICES=tests/tensor/fake_device was installed (its folder with cresset/ in it).
BUILT = os.environ.get("CRESSET_FAKE_DEVICE")


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.cpp")), ids=lambda file: file.stem)
def test_a_device_needs_nothing_but_the_headers_below_it(file):
    subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'native'}", str(file)], check=True)
    assert "cuda" not in file.read_text()


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import cresset as torch\n" + textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": BUILT},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")[:-1]


@pytest.mark.skipif(BUILT is None, reason="CRESSET_FAKE_DEVICE names no build with the device in it")
class TestTheFakeDevice:
    def test_tensors_are_made_there_and_come_back(self):
        assert run("""
            x = torch.arange(6.0, device="privateuseone").reshape(2, 3)
            print(x.device, x.t().cpu().tolist(), x[1, 2].item())
        """) == ["privateuseone:0 [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 5.0"]

    def test_formulas_run_there_plain_and_strided_and_in_half_precision(self):
        assert run("""
            x = torch.arange(6.0, device="privateuseone").reshape(2, 3)
            print((x * 2 + 1).device, (x * 2 + 1).tolist())
            print((x + x.t().contiguous().t()).tolist(), (x > 2).tolist())
            print((x.bfloat16() * 0.5).tolist(), (x + torch.tensor(10)).tolist())
        """) == [
            "privateuseone:0 [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]",
            "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]] [[False, False, False], [True, True, True]]",
            "[[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]] [[10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]",
        ]

    def test_its_own_kernel_is_taken_and_others_are_computed_on_the_cpu(self):
        assert run("""
            x = torch.arange(4.0, device="privateuseone")
            print(x.flip(0).tolist(), x.cumsum(0).device, x.cumsum(0).tolist())
            try: x.double().flip(0)
            except RuntimeError as error: print(error)
        """) == [
            "[3.0, 2.0, 1.0, 0.0] privateuseone:0 [0.0, 1.0, 3.0, 6.0]",
            "flip: this device has it for lists of float32",
        ]

    def test_gradients_and_a_step_of_an_optimizer(self):
        assert run("""
            w = torch.ones(3, device="privateuseone", requires_grad=True)
            step = torch.optim.SGD([w], lr=0.5)
            (w * w).sum().backward()
            step.step()
            print(w.grad.device, w.grad.tolist(), w.tolist())
        """) == ["privateuseone:0 [2.0, 2.0, 2.0] [0.0, 0.0, 0.0]"]

    def test_indices_and_masks(self):
        assert run("""
            x = torch.arange(4.0, device="privateuseone").reshape(2, 2)
            print(x[x > 0.5].tolist(), x[[0, 1], [1, 0]].tolist())
        """) == ["[1.0, 2.0, 3.0] [1.0, 2.0]"]
