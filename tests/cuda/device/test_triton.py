"""Kernels of Triton on tensors of a GPU, where `torch` is cresset."""

import importlib.util
import subprocess
import sys

import pytest

PROGRAM = """
import torch
import triton
import triton.language as tl

assert torch.__version__.endswith("cresset")


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@torch.library.triton_op("test_triton::added", mutates_args=())
def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(add)[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), block=256)
    return out


added.register_autograd(lambda ctx, grad: (grad, grad))
for dtype in (torch.float32, torch.bfloat16, torch.int32):
    x = torch.arange(1000, device="cuda").to(dtype)
    assert added(x, x).equal(2 * x)
x = torch.rand(1000, device="cuda", requires_grad=True)
added(x, x).sum().backward()
assert x.grad.eq(2).all()
stream = torch.cuda.Stream()
x = torch.rand(1 << 22, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    y = added(x * 2, x)
stream.synchronize()
assert y.equal(x * 2 + x)
print("all as it should be")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_take_tensors_and_streams_as_they_are(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "cresset", str(program)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0 and done.stdout == "all as it should be\n", done.stderr
