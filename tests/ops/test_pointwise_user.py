"""Pointwise operators that a program defines: compiled and evaluated by operations, they are the same operator."""

import hashlib
import inspect
import math
import os
import shutil
import stat
from pathlib import Path

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck
from cresset.ops.pointwise import exp, pointwise, sqrt, where
from cresset.ops.pointwise.definition import Divisor, Flag, Optional

needs_compiler = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiler), "operations"])
def way(request, monkeypatch, cache):
    """Both ways to compute; `way` says which."""
    monkeypatch.setenv("CRESSET_CACHE", str(cache))
    if request.param == "operations":
        monkeypatch.setenv("CRESSET_COMPILER", "none")
    else:
        monkeypatch.delenv("CRESSET_COMPILER", raising=False)
    return request.param


def squareplus():
    @pointwise(result="same")
    def squareplus(x, b=4.0):
        """(x + sqrt(x^2 + b)) / 2."""
        return (x + sqrt(x * x + b)) / 2

    @squareplus.derivative
    def _(x, b):
        return (1 + x / sqrt(x * x + b)) / 2

    return squareplus


def weighted():
    @pointwise(types="float complex")
    def weighted(x, y, weight):
        """x y + weight."""
        return x * y + weight

    @weighted.derivative
    def _(x, y):
        return y, x, 1

    return weighted


def test_it_is_compiled_where_it_can_be(way):
    assert squareplus().is_compiled == (way == "compiled")


def test_values(way):
    f = squareplus()
    assert f(cresset.tensor([0.0, 1.5])).tolist() == [1.0, 2.0]
    assert f(cresset.tensor([0.0]), b=16.0).tolist() == [2.0]
    assert f(cresset.tensor([0.0]), 16.0).tolist() == [2.0]
    assert f(1.5) == 2.0


@needs_compiler
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16], ids=str)
def test_both_ways_give_the_same_bits(dtype, monkeypatch, cache):
    monkeypatch.setenv("CRESSET_CACHE", str(cache))
    compiled, interpreted = squareplus(), squareplus()
    assert compiled.is_compiled
    monkeypatch.setenv("CRESSET_COMPILER", "none")
    assert not interpreted.is_compiled
    results = []
    for f in (compiled, interpreted):
        x = cresset.linspace(-3, 3, 1037, dtype=dtype).requires_grad_()
        y = f(x, 3.0)
        y.sum().backward()
        results.append((y.detach(), x.grad))
    assert all(cresset.equal(a, b) and a.dtype == dtype for a, b in zip(*results, strict=True))


def test_derivatives_of_first_and_second_order(way):
    x = cresset.tensor([-1.0, 0.3, 2.0], dtype=cresset.float64, requires_grad=True)
    assert gradcheck(squareplus(), (x,))
    assert gradgradcheck(squareplus(), (x,))


def test_a_complex_derivative_that_is_chosen_is_conjugated_when_it_is_recorded(way):
    @pointwise(types="complex")
    def gated(x, y):
        """x y where y is not 0."""
        return where(y == 0, 0, x * y)

    @gated.derivative
    def _(x, y):
        return where(y == 0, 0, y), where(y == 0, 0, x)

    x, y = (cresset.tensor(z, requires_grad=True) for z in ([1 + 2j, 3 - 1j], [2 - 1j, 0j]))
    expected = cresset.autograd.grad(gated(x, y).abs().sum(), (x, y))
    recorded = cresset.autograd.grad(gated(x, y).abs().sum(), (x, y), create_graph=True)
    for a, b in zip(expected, recorded, strict=True):
        cresset.testing.assert_close(b.detach(), a)


def test_derivatives_through_broadcasting_and_complex_numbers(way):
    f = weighted()
    x = cresset.tensor([[1.0], [2.0]], dtype=cresset.float64, requires_grad=True)
    y = cresset.tensor([3.0, 4.0, 5.0], dtype=cresset.float64, requires_grad=True)
    w = cresset.tensor(0.5, dtype=cresset.float64, requires_grad=True)
    assert f(x, y, w).tolist() == [[3.5, 4.5, 5.5], [6.5, 8.5, 10.5]]
    assert gradcheck(f, (x, y, w))
    assert gradgradcheck(f, (x, y, w))
    z = cresset.tensor([1 + 2j, -0.5j], dtype=cresset.complex128, requires_grad=True)
    assert gradcheck(f, (z, z.detach() * 2, 1.0))


def test_numbers_stand_for_tensors(way):
    f = weighted()
    assert f(cresset.tensor([1.0, 2.0]), 3.0, 1).tolist() == [4.0, 7.0]
    assert f(2, cresset.tensor([1.0, 2.0]), weight=0.5).tolist() == [2.5, 4.5]


def test_promotion(way):
    f, g = squareplus(), weighted()
    half = cresset.tensor([0.0], dtype=cresset.float16)
    assert f(half).dtype == cresset.float16
    assert g(half, cresset.tensor([1.0]), 1).dtype == cresset.float32
    assert g(cresset.tensor([1, 2]), 2, 1).dtype == cresset.float32  # no formula for whole numbers: the default dtype
    with pytest.raises(NotImplementedError, match="squareplus.*not implemented for 'int64'"):
        f(cresset.tensor([1]))


def test_results_that_are_bool(way):
    @pointwise(types="real", result="bool")
    def is_between(x, low=0.0, high=1.0):
        return (x >= low) & (x <= high)

    assert is_between(cresset.tensor([-1.0, 0.5, 2.0])).tolist() == [False, True, False]
    assert is_between(cresset.tensor([-1, 1, 2]), high=2).tolist() == [False, True, True]


def test_out_and_in_place(way):
    f = squareplus()
    x, out = cresset.tensor([0.0, 1.5]), cresset.empty(2)
    assert f(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert f.in_place(x) is x
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        weighted().in_place(cresset.zeros(2, 1), cresset.zeros(3), 1.0)


def test_backward_through_a_change_in_place(way):
    x = cresset.tensor([0.0, 1.5], requires_grad=True)
    y = x * 1
    squareplus().in_place(y)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([0.5, 0.8])


def test_non_contiguous_and_empty_tensors(way):
    f = squareplus()
    x = cresset.tensor([[0.0, 1.5], [1.5, 0.0], [0.0, 0.0]])
    assert f(x.t()).tolist() == [[1.0, 2.0, 1.0], [2.0, 1.0, 1.0]]
    assert f(x[::2, 0]).tolist() == [1.0, 1.0]
    assert f(cresset.empty(0, 3)).shape == (0, 3)
    assert f(cresset.tensor(1.5)).item() == 2.0


def test_a_declared_derivative_counts_though_the_formula_says_otherwise(way):
    @pointwise
    def rounded(x):
        """x rounded, with the gradient of x: a straight-through estimator."""
        return where(x > 0.5, 1, 0)

    @rounded.derivative
    def _():
        return 1

    x = cresset.tensor([0.2, 0.7], requires_grad=True)
    rounded(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_without_a_derivative_it_is_not_differentiable(way):
    @pointwise
    def shifted(x):
        return x + 1

    assert not shifted(cresset.ones(2, requires_grad=True)).requires_grad


def test_attributes_of_every_kind(way):
    @pointwise
    def bent(x, power: int = 2, limit: Optional = None, negate: Flag = False, *, scale=1.0):
        y = where(negate, -x, x) * scale + power
        return where(limit > 0, where(y > limit, limit, y), y)  # None is nan, which is not above 0

    x = cresset.tensor([1.0, 5.0])
    assert bent(x).tolist() == [3.0, 7.0]
    assert bent(x, 1, 4.0).tolist() == [2.0, 4.0]
    assert bent(x, negate=True, scale=2.0).tolist() == [0.0, -8.0]


def test_formulas_use_operators_and_other_formulas(way):
    f = squareplus()

    @pointwise
    def gated(x, y):
        return f(x) * exp(-y)

    @gated.derivative
    def _(x, y, output):
        return exp(-y) * (1 + x / sqrt(x * x + 4)) / 2, -output

    x = cresset.tensor([0.0, 1.5], dtype=cresset.float64, requires_grad=True)
    y = cresset.tensor([0.0, 1.0], dtype=cresset.float64, requires_grad=True)
    assert gated(x, y).tolist() == pytest.approx([1.0, 2.0 / math.e], rel=1e-14)
    assert gradcheck(gated, (x, y))
    assert gradgradcheck(gated, (x, y))


@pytest.mark.cpu_only("a device does not look for zeros among divisors")
@needs_compiler
def test_a_divisor_of_zero_is_an_error_among_whole_numbers(monkeypatch, cache):
    monkeypatch.setenv("CRESSET_CACHE", str(cache))

    @pointwise(types="real")
    def share(x, y: Divisor):
        return x - y

    assert share(cresset.tensor([1.0]), 0).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        share(cresset.tensor([1]), cresset.tensor([0]))


@needs_compiler
def test_what_was_compiled_is_kept_where_nobody_else_writes(monkeypatch, tmp_path):
    folder = tmp_path / "kept"
    monkeypatch.setenv("CRESSET_CACHE", str(folder))
    monkeypatch.delenv("CRESSET_COMPILER", raising=False)
    assert squareplus().is_compiled
    (file,) = folder.iterdir()
    made_of, holds = file.stem.split("-")
    assert len(made_of) == 64 and holds == hashlib.sha256(file.read_bytes()).hexdigest()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    made = file.stat().st_mtime_ns
    assert squareplus().is_compiled
    assert [f.stat().st_mtime_ns for f in folder.iterdir()] == [made]


def test_a_compiler_that_fails_is_reported_and_not_needed(monkeypatch, tmp_path):
    broken = tmp_path / "compiler"
    broken.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'cannot compile today' >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CRESSET_COMPILER", str(broken))
    monkeypatch.setenv("CRESSET_CACHE", str(tmp_path / "kept"))
    with pytest.warns(UserWarning, match="cannot compile today"):
        assert squareplus()(cresset.tensor([1.5])).tolist() == [2.0]


def test_a_new_definition_of_the_same_name_replaces_the_old_one_only_for_new_calls(way):
    def double(slope):
        @pointwise
        def doubled(x):
            return 2 * x

        doubled.derivative(lambda: slope)
        return doubled

    x = cresset.ones(1, requires_grad=True)
    first = double(2)(x)
    second = double(3)(x)
    assert cresset.autograd.grad(first, x, create_graph=True)[0].item() == 2.0
    assert cresset.autograd.grad(second, x, create_graph=True)[0].item() == 3.0


def test_as_a_method(way, monkeypatch):
    @pointwise(method=True)
    def tripled_here(x):
        return 3 * x

    try:
        x = cresset.ones(2)
        assert x.tripled_here().tolist() == [3.0, 3.0]
        assert x.tripled_here_() is x
        assert x.tolist() == [3.0, 3.0]
    finally:
        del cresset.Tensor.tripled_here, cresset.Tensor.tripled_here_


@pytest.mark.parametrize("name", ["add", "sigmoid", "matmul", "cumsum"])
def test_the_name_of_an_operator_of_the_package_is_taken(name):
    def formula(x):
        return x

    formula.__name__ = name
    with pytest.raises(ValueError, match=f"{name}: cresset has an operator '{name}'"):
        pointwise(formula)


def test_an_attribute_of_tensors_is_not_replaced():
    def shape(x):
        return x

    with pytest.raises(ValueError, match="Tensor has an attribute 'shape'"):
        pointwise(method=True)(shape)


@pytest.mark.parametrize("word", ["double", "i", "t1", "x_", "grad"])
def test_words_of_the_printed_text_are_not_names_of_parameters(word):
    formula = eval(f"lambda {word}: {word}")
    formula.__name__ = "harmless"
    with pytest.raises(ValueError, match=f"'{word}' cannot be the name of a parameter"):
        pointwise(formula)


def test_too_many_inputs():
    with pytest.raises(ValueError, match="1 to 4 inputs"):

        @pointwise
        def crowd(a, b, c, d, e):
            return a


def test_after_the_first_call_it_is_settled(way):
    f = squareplus()
    f(cresset.ones(1))
    with pytest.raises(RuntimeError, match="called with tensors already"):
        f.derivative(lambda x: 1)


def test_it_looks_like_a_function():
    f = squareplus()
    assert f.__name__ == "squareplus"
    assert f.__doc__ == "(x + sqrt(x^2 + b)) / 2."
    assert str(inspect.signature(f)) == "(x, b=4.0, *, out=None)"


def test_the_program_on_the_page_about_adding_an_operation(way, capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "adding_an_op.md").read_text(encoding="utf-8")
    program = page.split("### In a program of your own")[1].split("```python\n")[1].split("```")[0]
    exec(compile(program, "adding_an_op.md", "exec"), {"__name__": "program"})
    assert f"# {capsys.readouterr().out.strip()}" in program
