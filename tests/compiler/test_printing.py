"""Groups that are computed often become one compiled function, with eager's bits; what fails there costs a warning."""

import os
import stat
import subprocess
import sys

import pytest

import cresset
from cresset import _native
from cresset.compiler import background, printing
from cresset.nn import functional as F
from cresset.ops.pointwise import system_compiler

needs_compiler = pytest.mark.skipif(not system_compiler.find(), reason="no C++ compiler")
N = 300_000


def values(*shape, dtype=cresset.float32, seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return (cresset.randn(shape or (N,), generator=generator) * 2).to(dtype)


def bits(t):
    return t.view({1: cresset.uint8, 4: cresset.int32, 8: cresset.int64}[t.element_size()])


def call_until_printed(compiled, *args):
    """Call until the group has been compiled and the function has run; whether it has."""
    before = _native.printed_statistics()
    for _ in range(2000):
        compiled(*args)
        if _native.printed_statistics()["asked"] > before["asked"]:
            break
    background.wait()
    result = compiled(*args)
    return result, _native.printed_statistics()["runs"] > before["runs"]


PROGRAMS = {
    "several functions": lambda a, b: ((a * b + 1).sigmoid() - (b * 0.5).tanh()).abs().add(1).log().clamp(-2, 2),
    "a value is kept": lambda a, b: (x := (a + b).exp(), x * 2 - a),
    "a condition": lambda a, b: cresset.where((a > b) & (a != 0), a * 3, b.sigmoid()),
    "bools": lambda a, b: (a > 0, (a * b <= 1) | (b != b)),
    "attributes": lambda a, b: F.leaky_relu(a, 0.2) + F.elu(b, 0.5) * cresset.add(a, b, alpha=3),
    "numbers": lambda a, b: (a * 0.1 + 7) / 3 - b.clamp(max=0.25) ** 2,
    "rows": lambda a, b: (a.view(300, 1000) + b[:1000]).exp() * b[:300, None],
    "one twice": lambda a, b: (a + a) * (a - b) + F.silu(a),
}


@needs_compiler
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_printed_group_has_eagers_bits(name, dtype):
    a, b = values(dtype=dtype), values(dtype=dtype, seed=1)
    a[:5] = cresset.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-42])
    program = PROGRAMS[name]
    got, is_printed = call_until_printed(cresset.compile(program), a, b)
    assert is_printed
    expected = program(a, b)
    for x, y in zip(*([v] if isinstance(v, cresset.Tensor) else v for v in (got, expected)), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        assert cresset.equal(bits(x), bits(y))


@needs_compiler
def test_another_size_takes_the_same_function():
    def program(a):
        return (a * 2).exp() + 1.5

    compiled = cresset.compile(program)
    _, is_printed = call_until_printed(compiled, values())
    before = _native.printed_statistics()
    for n in (32768, 99_991, 1_000_003):
        a = values(n, seed=n)
        assert cresset.equal(bits(compiled(a)), bits(program(a)))
    after = _native.printed_statistics()
    assert is_printed and after["asked"] == before["asked"]


@needs_compiler
def test_the_gradients_of_a_group():
    def program(x, h, bias):
        return (x + F.gelu(h + bias)).square()

    def gradients(function):
        leaves = [values(300, 1000, seed=1), values(300, 1000, seed=2), values(1000, seed=3)]
        leaves = [t.requires_grad_() for t in leaves]
        function(*leaves).sum().backward()
        return [t.grad for t in leaves]

    compiled = cresset.compile(program)
    call_until_printed(lambda: gradients(compiled))
    for x, y in zip(gradients(compiled), gradients(program), strict=True):
        assert cresset.equal(bits(x), bits(y))


def test_loops_with_more_than_a_formula_are_not_printed():
    assert (
        printing.group_source("pass sin -1 f32 m0f32\nkeep mul -1 f32 v0f32 m0f32\n") is None
    )  # quick for small angles
    assert printing.group_source("keep lgamma -1 f32 m0f32\n") is None  # the C library's


def test_the_text_of_a_group():
    text = printing.group_source("pass exp -1 f32 m0f32\npass tanh -1 f32 m0f32\nkeep mul -1 f32 v0f32 v1f32\n")
    assert text.count("#pragma GCC ivdep") == 2  # a loop for each of the two functions
    assert "wv0[512]" in text and "r2[i] = v2" in text and "wv2" not in text


FAILING = """
import sys, warnings
import cresset
from cresset import _native
from cresset.compiler import background

program = lambda a: ((a * 2).exp() + 1).log()
a, compiled = cresset.randn(300_000), cresset.compile(program)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    for _ in range(2000):
        compiled(a), compiled(a * 1).tanh()
        if _native.printed_statistics()["asked"] == 1:
            break
    background.wait()
    assert cresset.equal(compiled(a), program(a))
print(_native.printed_statistics()["ready"], len(heard), *(str(w.message).replace("\\n", " ") for w in heard))
"""


def run_failing(**environment):
    done = subprocess.run(
        [sys.executable, "-c", FAILING], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    ready, count, *message = done.stdout.split(maxsplit=2)
    return int(ready), int(count), "".join(message)


class TestWhatFails:
    """Eager's result, and one warning with the reason."""

    def test_no_compiler(self, tmp_path):
        ready, count, message = run_failing(CXX="no-such-compiler", CRESSET_CACHE=str(tmp_path))
        assert (ready, count) == (0, 1) and "no C++ compiler was found" in message

    def test_no_compiler_is_wanted(self, tmp_path):
        assert run_failing(CRESSET_COMPILER="none", CRESSET_CACHE=str(tmp_path))[:2] == (0, 0)

    def test_a_compiler_that_fails(self, tmp_path):
        ready, count, message = run_failing(CXX="false", CRESSET_CACHE=str(tmp_path))
        assert (ready, count) == (0, 1) and "false" in message

    @needs_compiler
    def test_a_cache_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        ready, count, message = run_failing(CRESSET_CACHE=str(tmp_path / "file" / "cache"))
        assert (ready, count) == (0, 1) and "NotADirectoryError" in message

    @needs_compiler
    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
    def test_a_cache_that_is_read_only(self, tmp_path):
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
        ready, count, message = run_failing(CRESSET_CACHE=str(tmp_path))
        assert (ready, count) == (0, 1) and "PermissionError" in message

    @needs_compiler
    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
    def test_a_cache_that_is_full(self, tmp_path):
        compiler = tmp_path / "compiler"  # a disk that is full when the compiler writes
        compiler.write_text(
            f'#!/bin/sh\ncase "$1" in --version) exec {system_compiler.find()} --version;; esac\n'
            "echo 'final link failed: No space left on device' >&2\necho x > /dev/full\n"
        )
        compiler.chmod(0o700)
        ready, count, message = run_failing(CXX=str(compiler), CRESSET_CACHE=str(tmp_path / "cache"))
        assert (ready, count) == (0, 1) and "No space left on device" in message
        assert list((tmp_path / "cache").iterdir()) == []

    @needs_compiler
    def test_a_cache_that_is_damaged(self, tmp_path):
        assert run_failing(CRESSET_CACHE=str(tmp_path))[:2] == (1, 0)
        (made,) = tmp_path.glob("*.so")
        whole = made.read_bytes()
        assert run_failing(CRESSET_CACHE=str(tmp_path))[:2] == (1, 0)  # found there
        made.write_bytes(whole[: len(whole) // 2])
        ready, count, message = run_failing(CRESSET_CACHE=str(tmp_path))
        assert (ready, count) == (1, 1) and "damaged" in message
