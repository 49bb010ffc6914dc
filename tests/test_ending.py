"""A process that ends while threads are at work, and one with a second interpreter."""

import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import random, sys, threading, time
import cresset as torch

sys.setswitchinterval(1e-5)
x, small = torch.ones(1 << 18), torch.ones(10)
weight = torch.nn.Parameter(torch.ones(1 << 18))
images, kernel = torch.ones(2, 3, 32, 32), torch.nn.Parameter(torch.ones(4, 3, 3, 3))
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 1
    @staticmethod
    def backward(ctx, g):
        return g + sum(range(50))

def hooked(t):
    t.register_hook(lambda g: g + sum(range(50)))
    return t
"""
WORK = {
    "forward": "x.exp().sum()",
    "small operators": "(small + 1).tolist()",
    "backward": "(weight * x).exp().sum().backward()",
    "a derivative in Python": "Own.apply(weight).sum().backward()",
    "hooks": "hooked(weight * 2).sum().backward()",
    "layers": "net(torch.ones(4, 8)).sum().backward()",
    "convolution": "torch.nn.functional.conv2d(images, kernel).sum().backward()",
    "vmap": "torch.vmap(lambda a: a.sin().sum())(torch.ones(4, 8))",
    "a loader with threads": (
        "[b.sum() for b in torch.utils.data.DataLoader(range(200), batch_size=4, num_workers=2, worker_type='thread')]"
    ),
}


def run(program, **environment):
    environment = {**os.environ, "OMP_NUM_THREADS": "3", **environment}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("work", WORK)
def test_daemon_threads_at_work_do_not_disturb_the_end(work):
    daemons = f"""
def work():
    while True:
        {WORK[work]}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(.05 + random.random() * .05)
print("ends")
"""
    for _ in range(int(os.environ.get("CRESSET_ENDINGS", "2"))):
        assert run(HEAD + daemons) == "ends\n"


@pytest.mark.parametrize("first", ["", "import cresset"])
def test_a_second_interpreter_cannot_import_cresset_and_the_first_goes_on(first):
    interpreters = pytest.importorskip("_xxsubinterpreters")
    del interpreters
    program = f"""
        import _xxsubinterpreters as interpreters
        {first}
        for _ in range(3):
            other = interpreters.create()
            interpreters.run_string(other, '''
        try:
            import cresset
        except ImportError as error:
            assert "main interpreter" in str(error), error
        else:
            raise AssertionError("imported")
        ''')
            interpreters.destroy(other)
        import cresset as torch
        x = torch.ones(3, requires_grad=True)
        (x.exp() * torch.nn.Linear(3, 3)(x)).sum().backward()
        assert x.grad.shape == (3,) and torch.tensor([1, 2]).tolist() == [1, 2]
        print("well")
    """
    assert run(textwrap.dedent(program)) == "well\n"
