"""The pool of threads: how many work on an operation changes no bit, and what goes wrong in one of them reaches the
caller.
"""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import cresset as torch


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_number_of_threads_changes_no_bit(threads):
    torch.manual_seed(0)
    x = torch.randn(300_001)
    m = torch.randn(257, 1000)

    def results():
        torch.manual_seed(1)
        return [
            x.sum(), x.cumsum(0), x.exp(), m @ m.mT, m.softmax(1), m.std(0), m.sort(1)[0], torch.fft.rfft(x).abs(),
            torch.randn(300_000),
            torch.nn.functional.layer_norm(m, (1000,)), torch.nn.functional.conv1d(m[None], torch.ones(8, 257, 3)),
            m.prod(0), x.logcumsumexp(0),
        ]  # fmt: skip

    threads(1)
    expected = results()
    for n in (2, 3, 7, 64, 256):
        threads(n)
        for i, (a, b) in enumerate(zip(results(), expected, strict=True)):
            assert a.equal(b), (n, i)


def test_an_error_in_any_thread_is_the_callers(threads):
    threads(4)
    indices = torch.zeros(400_000, dtype=torch.int64)
    for place in (0, 150_000, 399_999):
        indices[place] = 7
        with pytest.raises(IndexError):
            torch.ones(5)[indices]
        with pytest.raises(IndexError):
            torch.nn.functional.embedding(indices, torch.ones(5, 3))
        indices[place] = 0
        assert torch.ones(5)[indices].sum() == 400_000


def test_more_threads_than_an_operation_is_divided_among_are_said_and_not_made(threads):
    with pytest.warns(UserWarning, match="among 256 threads at most, and so many are used; asked for were 100000"):
        threads(100_000)
    assert torch.get_num_threads() == 256
    assert (torch.ones(300, 300) @ torch.ones(300, 300) == 300).all()  # room for 100,000 was more than there is


def test_many_callers_share_the_threads(threads):
    threads(4)
    x = torch.arange(400_000, dtype=torch.float64)
    expected = (x + 1).sqrt()
    wrong = []

    def work():
        for _ in range(20):
            if not (x + 1).sqrt().equal(expected):
                wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(20)]  # more than there are regions
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_fewer_threads_than_before_are_used(threads):
    threads(6)
    x = torch.ones(1 << 20)
    x.exp()
    threads(2)
    for _ in range(50):
        assert x.exp().equal(x.exp())
    threads(1)
    assert (x + 1).sum() == 2 << 20


def run(program, **environment):
    environment = {**os.environ, "OMP_NUM_THREADS": "4", **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_environment_decides_how_many():
    assert run("import cresset; print(cresset.get_num_threads())", OMP_NUM_THREADS="5") == "5"
    assert run("import cresset; print(cresset.get_num_threads())", OMP_NUM_THREADS="3,2") == "3"


def test_the_pool_starts_when_it_is_needed_and_threads_take_no_signals():
    assert run("""
        import os, signal
        import cresset as torch
        assert len(os.listdir("/proc/self/task")) == 1
        torch.ones(10) + 1
        assert len(os.listdir("/proc/self/task")) == 1
        torch.ones(1 << 20) + 1
        tasks = sorted(os.listdir("/proc/self/task"), key=int)[1:]
        assert len(tasks) == 3, tasks
        for task in tasks:
            blocked = [line for line in open(f"/proc/self/task/{task}/status") if line.startswith("SigBlk")]
            assert int(blocked[0].split()[1], 16) >> (signal.SIGINT - 1) & 1, blocked
        print("well")
    """) == "well"  # fmt: skip


def test_without_room_for_threads_the_caller_does_the_work():
    assert run("""
        import os, resource
        import cresset as torch
        torch.set_num_threads(1)
        x = torch.ones(1 << 20)
        torch.set_num_threads(4)
        limit = int(open("/proc/self/statm").read().split()[0]) * 4096 + (15 << 19)  # 7.5 MiB: room for the result, not for a stack
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        few = (x + 1).sum().item()
        assert len(os.listdir("/proc/self/task")) == 1
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        many = (x + 1).sum().item()
        assert few == many == 2 << 20
        print("well")
    """) == "well"  # fmt: skip  # noqa: E501


def test_denormals_are_flushed_in_every_thread_that_helps():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            """
import cresset
tiny = cresset.full((1 << 20,), 1e-40)
cresset.set_num_threads(2)
for on in (True, False, True, False):
    supported = cresset.set_flush_denormal(on)
    kept = int((tiny * 0.5 > 0).sum())
    cresset.set_flush_denormal(False)
    assert kept == (0 if on and supported else tiny.numel()), (on, kept)
try:
    cresset.set_flush_denormal(1)
except RuntimeError as error:
    assert "flush_denormal expects a bool, but got int" in str(error)
""",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
