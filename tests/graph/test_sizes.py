"""Sizes: their arithmetic, the formulas behind them, and which sizes are recorded."""

from cresset.graph.sizes import Fraction, Size, sizes_to_try, solve

A, B = Size((3, 4, 6, 9)), Size((5, 7, 6, 11))
KNOWN = [(A.samples, "a"), (B.samples, "b")]


def described(formula):
    return formula and (formula.dimensions, formula.factor, formula.before, formula.divisor, formula.after)


def test_arithmetic_is_that_of_the_samples():
    assert (A + 1).samples == (4, 5, 7, 10) and (2 * A - B).samples == (1, 1, 6, 7)
    assert A - A == 0 and A // A == 1
    assert (7 - A).samples == (4, 3, 1, -2)


def test_formulas_that_are_found():
    assert described(solve(A, KNOWN)) == (["a"], 1, 0, 1, 0)
    assert described(solve(A * 2 - 1, KNOWN)) == (["a"], 2, -1, 1, 0)
    assert described(solve(A * B * 4, KNOWN)) == (["a", "b"], 4, 0, 1, 0)
    assert described(solve(A // 2, KNOWN, rounding=True)) == (["a"], 1, 0, 2, 0)
    assert described(solve((A + 1) // 2, KNOWN, rounding=True)) == (["a"], 1, 1, 2, 0)
    assert described(solve(A * 3 // 2, KNOWN, rounding=True)) == (["a"], 3, 0, 2, 0)


def test_what_is_missing_to_a_multiple():
    size = Size((5, 6, 11, 16))
    found = solve(Size(-s % 4 for s in size.samples), [(size.samples, "n")], rounding=True)
    assert described(found) == (["n"], -1, 0, 1, 0) and found.modulus == 4


def test_what_is_no_formula_is_not_found():
    assert solve(Size((8, 16, 64, 512)), KNOWN, rounding=True) is None


def test_fractions_of_sizes():
    assert Fraction.of([0.5, 0.5]) == 0.5
    assert Fraction(s**-0.5 for s in A.samples).solve([]) == (1, A, 0.5)
    assert Fraction(s**0.5 for s in A.samples).solve([]) == (A, 1, 0.5)
    assert Fraction(a / b for a, b in zip(A.samples, B.samples, strict=True)).solve([A.samples, B.samples]) == (
        A,
        B,
        1.0,
    )
    assert Fraction(2 / (s - 1) for s in B.samples).solve([B.samples]) == (2, B - 1, 1.0)
    assert Fraction([0.3, 0.7, 0.9, 0.123]).solve([A.samples]) is None


def test_recorded_sizes_are_apart_and_never_one():
    for plan in sizes_to_try({"n": 1, "h": 16, "w": 16}, ["n", "h", "w"])[:1]:
        assert min(min(samples) for samples in plan.values()) >= 2
        for k in range(4):
            assert len({samples[k] for samples in plan.values()}) == 3


def test_there_are_ways_below_and_in_steps():
    plans = sizes_to_try({"h": 64}, ["h"])
    assert any(max(p["h"]) <= 64 for p in plans)
    assert any(all(s % 64 == 0 for s in p["h"]) for p in plans)
