"""Launches are made by a thread of their own; nobody sees it."""

import ctypes
import os
import subprocess
import sys
import threading

import pytest

import cresset
from cresset.cuda.libraries import driver


def test_a_copy_comes_after_what_its_argument_launches():
    """The result of a convolution lies in a private layout, which reading it changes."""
    image, weight = cresset.randn(2, 8, 5, 5), cresset.randn(6, 8, 1, 1)
    expected = cresset.nn.functional.conv2d(image.double(), weight.double())
    with cresset.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for _ in range(20):
            result = cresset.nn.functional.conv2d(image.cuda(), weight.cuda()).cpu()
            assert (result.double() - expected).abs().max().item() < 1e-5


def test_more_than_the_queue_holds():
    x = cresset.zeros(3, device="cuda")
    for _ in range(5000):
        x += 1
    assert x.tolist() == [5000.0] * 3


def test_several_threads():
    def count(to, tensor):
        for _ in range(200):
            tensor += 1
        to.append(tensor.tolist())

    results = []
    tensors = [cresset.zeros(2, device="cuda") for _ in range(4)]
    threads = [threading.Thread(target=count, args=(results, t)) for t in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[200.0, 200.0]] * 4


def test_a_process_forks_while_work_is_on_its_way():
    x = cresset.zeros(4, device="cuda")
    for _ in range(100):
        x += 1
    child = os.fork()
    if child == 0:
        os._exit(int(cresset.ones(3).sum().item()))
    for _ in range(100):
        x += 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert x.tolist() == [200.0] * 4


@pytest.mark.parametrize("environment", [{}, {"CUDA_LAUNCH_BLOCKING": "1"}])
def test_a_program_ends_while_work_is_on_its_way(environment):
    program = "import cresset\nx = cresset.zeros(9, device='cuda')\nfor _ in range(300): x += 1\n"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, check=True, timeout=120)


KERNELS = """
import cresset
x = cresset.randn(40, device="cuda")
chain = [cresset.tanh(x) * 2, x.sigmoid().exp2(), x.reshape(5, 8).softmax(1), x.sort().values, x.cumsum(0), x.log1p()]
assert [y.cpu().numel() for y in chain] == [40] * 6
assert cresset._native.cuda.compile_statistics()[0] > 5
assert (chain[0].cpu() - 2 * x.cpu().tanh()).abs().max() < 1e-6
"""
BROKEN = """
import cresset
x = cresset.zeros(8, device="cuda")
cresset._native.cuda.set_kernel_folder("/nowhere")
try:
    (x + 1).cpu()
except RuntimeError as problem:
    assert "the CUDA kernel pointwise did not compile" in str(problem), problem
else:
    raise AssertionError("nothing was raised")
assert x.cpu().tolist() == [0.0] * 8
"""


@pytest.mark.parametrize("environment", [{}, {"CUDA_LAUNCH_BLOCKING": "1"}])
@pytest.mark.parametrize("program", [KERNELS, BROKEN], ids=["good", "broken"])
def test_launches_wait_for_kernels_that_are_compiled_meanwhile(program, environment, tmp_path):
    environment = {**os.environ, **environment, "CRESSET_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)


def test_an_address_is_given_when_all_is_with_the_driver():
    """A program that then copies by itself gets what was launched before."""
    x = cresset.zeros(100, device="cuda")
    values = (ctypes.c_float * 100)()
    for turn in range(1, 21):
        for _ in range(50):
            x += 1
        address = ctypes.c_uint64(x.data_ptr())
        assert driver().cuMemcpyDtoHAsync_v2(values, address, ctypes.c_size_t(400), None) == 0
        assert driver().cuStreamSynchronize(None) == 0
        assert list(values) == [50.0 * turn] * 100
