"""A process that forks after, or while, its threads are at work: the child computes the same bits, and ends.

Everything runs in a process of its own with a time limit: what used to go wrong was a child that waits for ever.
"""

import os
import subprocess
import sys
import textwrap

import pytest

OPERATORS = """
import hashlib, multiprocessing, os, signal, sys, threading
import cresset as torch

def inputs():
    torch.manual_seed(3)
    return torch.randn(1 << 20), torch.randn(300, 400), torch.randn(4, 8, 64, 64), torch.randn(32, 64, 48)

x, m, image, steps = inputs()
weights = torch.randn(16, 8, 3, 3)
table = torch.randn(5000, 64)
numbers = torch.randint(0, 5000, (20000,))
lstm = torch.nn.LSTM(48, 40, batch_first=True)
integers = torch.randint(0, 1 << 40, (1 << 18,))

def drawn():
    torch.manual_seed(11)
    return torch.randn(1 << 20)

def gradient():
    w = torch.nn.Parameter(weights.clone())
    torch.nn.functional.conv2d(image, w, padding=1).square().sum().backward()
    return w.grad

OPERATORS = {
    "matmul": lambda: m @ m.mT,
    "half matmul": lambda: m.bfloat16() @ m.mT.bfloat16(),
    "conv2d": lambda: torch.nn.functional.conv2d(image, weights, padding=1),
    "conv2d backward": gradient,
    "sum": lambda: x.sum(),
    "sum of columns": lambda: x.view(1024, 1024).sum(0),
    "add": lambda: x + 1.5 * x,
    "exp": lambda: x.exp(),
    "sort": lambda: integers.sort()[0],
    "cumsum": lambda: x.cumsum(0),
    "softmax": lambda: x.view(1024, 1024).softmax(1),
    "layer_norm": lambda: torch.nn.functional.layer_norm(x.view(1024, 1024), (1024,)),
    "max_pool2d": lambda: torch.nn.functional.max_pool2d(image, 2),
    "randn": drawn,
    "embedding": lambda: torch.nn.functional.embedding(numbers, table),
    "index_add": lambda: torch.zeros(5000, 64).index_add(0, numbers, table[numbers]),
    "lstm": lambda: lstm(steps)[0],
    "fft": lambda: torch.view_as_real(torch.fft.rfft(x)),
    "attention": lambda: torch.nn.functional.scaled_dot_product_attention(image, image, image),
    "copy": lambda: x.view(1024, 1024).mT.contiguous(),
}

def digests():
    with torch.no_grad():
        found = {}
        for name, f in OPERATORS.items():
            with torch.set_grad_enabled(name.endswith("backward")):
                found[name] = hashlib.sha256(f().detach().float().numpy().tobytes()).hexdigest()
        return found

def forked(work):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run(program, threads=3, limit=120):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", OPERATORS + textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_child_computes_the_same_bits_after_its_parent_has_used_its_threads():
    assert run("""
        before = digests()
        assert forked(lambda: [n for n, d in digests().items() if before[n] != d].__len__()) == 0
        assert digests() == before
        print("well")
    """) == ["well"]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["matmul", "conv2d", "sum", "add", "sort", "softmax", "layer_norm", "randn", "embedding", "lstm"]
)
def test_a_child_of_a_process_that_used_one_operator_runs_it_too(name):
    assert run(f"""
        f = OPERATORS[{name!r}]
        with torch.no_grad():
            first = f()
            assert forked(lambda: 0 if f().equal(first) else 3) == 0
        print("well")
    """) == ["well"]  # fmt: skip


def test_a_grandchild_has_threads_too():
    assert run("""
        before = digests()
        grandchild = lambda: 0 if digests() == before else 3
        child = lambda: 0 if digests() == before and forked(grandchild) == 0 and forked(grandchild) == 0 else 4
        assert forked(child) == 0 and forked(child) == 0
        print("well")
    """) == ["well"]  # fmt: skip


def test_a_child_has_threads_of_its_own():
    assert run("""
        def threads():
            return len(os.listdir("/proc/self/task"))
        x.exp()
        many = threads()
        def child():
            alone = threads()
            x.exp()
            return 0 if (alone, threads()) == (1, many) else 3
        assert many >= 3 and forked(child) == 0
        print("well")
    """) == ["well"]  # fmt: skip


@pytest.mark.parametrize(
    "busy",
    ["x.exp()", "m @ m.mT", "torch.randn(1 << 20)", "torch.fft.rfft(x[:3 * len(t)])", "OPERATORS['conv2d']().add_(1)"],
)
def test_a_process_forks_while_another_thread_is_inside_an_operator(busy):
    assert run(f"""
        before = digests()
        stop, t = False, []
        def work():
            while not stop:
                t.append(0)
                {busy}
        others = [threading.Thread(target=work) for _ in range(2)]
        for other in others:
            other.start()
        def child():
            torch.manual_seed(5)
            torch.randn(1 << 18), torch.rand(3), x.exp(), m @ m.mT, torch.fft.rfft(x[:99]), OPERATORS["conv2d"]().add_(1)
            return 0
        codes = [forked(child) for _ in range(30)]
        stop = True
        for other in others:
            other.join()
        assert codes == [0] * 30, codes
        assert digests() == before
        print("well")
    """) == ["well"]  # fmt: skip  # noqa: E501


def test_processes_and_loaders_that_fork_use_parallel_operators():
    assert run("""
        def child(connection):
            connection.send(digests())

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return 6
            def __getitem__(self, i):
                torch.set_num_threads(3)
                return (m + i) @ m.mT, (x + i).view(1024, 1024).softmax(1).sum(0)

        before = digests()
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
        process.start()
        assert ours.recv() == before
        process.join()
        plain = list(torch.utils.data.DataLoader(Images(), batch_size=2))
        loaded = list(torch.utils.data.DataLoader(Images(), batch_size=2, num_workers=2, multiprocessing_context="fork"))
        assert all(a.equal(b) and c.equal(d) for (a, c), (b, d) in zip(plain, loaded, strict=True))
        print("well")
    """) == ["well"]  # fmt: skip  # noqa: E501
