"""Signals that arrive in the middle of a computation: it goes on, its result is right, and so is the memory.

python tests/ops/test_signals.py 60       # the same for a minute
"""

import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

import pytest

import cresset
import cresset.nn.functional as F  # noqa: N812
from cresset import nn

pytestmark = pytest.mark.cpu_only("signals in its threads")


def matrices(size, dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return cresset.randn(size, size).to(dtype), cresset.randn(size, size).to(dtype)
    return cresset.randint(0, 7, (size, size)).to(dtype), cresset.randint(0, 7, (size, size)).to(dtype)


def works():
    """Named computations, long enough to be interrupted."""
    cresset.manual_seed(0)
    sizes = {"float32": 600, "float16": 600, "bfloat16": 600, "float64": 400, "complex64": 300, "complex128": 200}
    sizes.update({"int64": 200, "int32": 300, "int16": 300, "int8": 300, "uint8": 300})
    for name, size in sizes.items():
        a, b = matrices(size, getattr(cresset, name))
        yield f"{name} product", lambda a=a, b=b: a @ b
    a, b = matrices(400, cresset.int8)
    yield "int8 to int32", lambda: cresset._int_mm(a, b)
    batch = cresset.randn(32, 96, 96)
    yield "batch of products", lambda: batch @ batch
    row = cresset.randn(4, 512)
    linear, lstm = nn.Linear(512, 2048), nn.LSTM(64, 128, batch_first=True)
    yield "linear of few rows", lambda: linear(row)
    rows, steps = cresset.randn(512, 512), cresset.randn(8, 32, 64)
    yield "linear and its gradients", lambda: cresset.autograd.grad(linear(rows).sum(), list(linear.parameters()))[0]
    yield "lstm", lambda: lstm(steps)[0]
    for name, channels, groups, stride in (
        ("winograd", 64, 1, 1),
        ("direct", 64, 1, 2),
        ("own filter each", 64, 64, 1),
        ("patches", 6, 1, 1),
    ):
        image, weight = (
            cresset.randn(2, channels, 40, 40, requires_grad=True),
            cresset.randn(channels, channels // groups, 3, 3, requires_grad=True),
        )

        def convolve(image=image, weight=weight, groups=groups, stride=stride):
            y = F.conv2d(image, weight, padding=1, stride=stride, groups=groups)
            return cresset.cat([g.flatten() for g in (y, *cresset.autograd.grad(y.sum(), [image, weight]))])

        yield f"convolution, {name}", convolve
    q = cresset.randn(2, 4, 256, 32)
    yield "attention", lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True)
    numbers, signals = cresset.randn(400_000), cresset.randn(64, 1000)
    yield "sort", lambda: numbers.sort()[0]
    yield "sum", lambda: numbers.sum()
    yield "erfinv", lambda: (numbers * 0.2).erfinv()
    yield "fft", lambda: cresset.fft.fft(signals)


def same(a, b):
    a, b = ((cresset.view_as_real(t.detach()) if t.is_complex() else t.detach()).contiguous() for t in (a, b))
    return a.view(-1).view(cresset.uint8).equal(b.view(-1).view(cresset.uint8))


def compute_under_signals(seconds):
    """How many signals came, and which computations gave other bits than without them."""
    cases = [(name, work, work()) for name, work in works()]
    count = 0

    def handler(number, frame):
        nonlocal count
        count += len([0] * 50) // 50  # some work that allocates, as handlers do

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    wrong, end = set(), time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            for name, work, expected in cases:
                if not same(work(), expected):
                    wrong.add(name)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return count, sorted(wrong)


def run_alone(*arguments, **settings):
    """This file as a program: what a signal breaks would take the tests along."""
    return subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "2", **settings},
    )


def test_a_handled_signal_harms_no_computation():
    done = run_alone("3")
    assert done.returncode == 0, done.stderr
    signals, wrong = done.stdout.splitlines()
    assert int(signals.split()[0]) > 50 and wrong == "wrong: []"


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_nor_on_smaller_instruction_sets(level):
    done = run_alone("1", CRESSET_ISA=level)
    assert done.returncode == 0 and "wrong: []" in done.stdout, done.stderr


INTERRUPTED = """
import os, signal, threading, cresset
a = cresset.randn(2000, 2000)
expected = a @ a
for dtype in (cresset.float32, cresset.float16, cresset.bfloat16):
    b = a.to(dtype)
    for delay in (0.03, 0.06, 0.09):
        try:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                b @ b
        except KeyboardInterrupt:
            print("interrupted")
assert (a @ a).equal(expected)
print("goes on")
"""


def test_control_c_in_a_product_is_a_keyboard_interrupt_and_the_process_goes_on():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted"] * 9 + ["goes on"]


# A kernel of the operating system writes a handler's frame below the stack pointer, wherever that points.
PROBE = r"""
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
static char *low, *high, own_stack[1 << 16];
static long owner;
static volatile long inside, outside;
static void look(int, siginfo_t*, void* context) {
  if (syscall(SYS_gettid) != owner) return;
  char* const pointer = reinterpret_cast<char*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  if (pointer >= low && pointer < high) inside = inside + 1;
  else outside = outside + 1;
}
extern "C" void look_every(int microseconds) {
  pthread_attr_t attributes;
  void* base;
  size_t size;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &base, &size);
  low = static_cast<char*>(base), high = low + size, owner = syscall(SYS_gettid);
  stack_t stack = {own_stack, 0, sizeof own_stack};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = look;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  itimerval often = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &often, nullptr);
}
extern "C" long seen_inside() { return inside; }
extern "C" long seen_outside() { return outside; }
"""


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="needs a C++ compiler")
@pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="reads a register of x86-64 under Linux"
)
def test_the_stack_pointer_stays_in_the_stack(tmp_path):
    (tmp_path / "probe.cpp").write_text(PROBE)
    command = [os.environ.get("CXX", "g++"), "-O1", "-shared", "-fPIC", "probe.cpp", "-o", "probe.so", "-lpthread"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = run_alone("3", str(tmp_path / "probe.so"), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    inside, outside = map(int, done.stdout.split())
    assert inside > 100 and outside == 0


def look_at_the_stack(seconds, probe):
    look = ctypes.CDLL(probe)
    cases = list(works())
    look.look_every(500)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _, work in cases:
            work()
    return look.seen_inside(), look.seen_outside()


if __name__ == "__main__" and len(sys.argv) == 3:
    print(*look_at_the_stack(float(sys.argv[1]), sys.argv[2]))
elif __name__ == "__main__":
    signals, wrong = compute_under_signals(float(sys.argv[1]))
    print(f"{signals} signals\nwrong: {wrong}")
