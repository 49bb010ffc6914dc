"""Symbols for sizes: formulas of them, what their ranges say, and what a decision leaves behind."""

import pytest

import cresset
from cresset import fx
from cresset.fx.experimental.symbolic_shapes import (
    DimDynamic,
    DivideByKey,
    GuardOnDataDependentSymNode,
    RelaxedUnspecConstraint,
    ShapeEnv,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
    ValueRanges,
    constrain_range,
    free_symbols,
    guard_int,
    guard_or_false,
    guard_or_true,
    is_concrete_int,
    optimization_hint,
    statically_known_false,
    statically_known_true,
    sym_eq,
)
from cresset.fx.passes.runtime_assert import insert_deferred_runtime_asserts


@pytest.fixture
def env():
    return ShapeEnv()


def backed(env, size, how=DimDynamic.DYNAMIC):
    return env.create_symintnode(env.create_symbol(size, "x", how), hint=size)


def test_formulas_are_written_in_one_form(env):
    n = env.create_unbacked_symint()
    assert [str(f) for f in (n + 1, 2 * n, n // 2, n % 3, -n, n * n - 1, 2 * (n + 1), 5 - n)] == [
        "u0 + 1", "2*u0", "(u0//2)", "PythonMod(u0, 3)", "-u0", "u0**2 - 1", "2*u0 + 2", "-u0 + 5",
    ]  # fmt: skip
    assert n - n == 0 and (4 * n + 8) // 4 - n == 2 and (6 * n) % 3 == 0
    assert str(cresset.sym_max(n, 3)) == "Max(3, u0)" and str(cresset.sym_not(n == 3)) == "Ne(u0, 3)"


def test_a_symbol_without_an_example_decides_nothing(env):
    n = env.create_unbacked_symint()
    with pytest.raises(GuardOnDataDependentSymNode, match=r"guard on data-dependent expression Eq\(u0, 3\)"):
        bool(n == 3)
    with pytest.raises(GuardOnDataDependentSymNode, match="specialized integer"):
        int(n)
    assert guard_or_false(n == 3) is False and guard_or_true(n == 3) is True and env.guards == []
    assert not statically_known_true(n >= 0) and not statically_known_false(n >= 0)


def test_what_is_checked_is_known_from_there_on(env):
    n = env.create_unbacked_symint()
    cresset._check(n >= 2)
    cresset._check(3 * n < 31)
    assert env.var_to_range == {"u0": ValueRanges(2, 10)}
    assert statically_known_true(n * n >= 4) and statically_known_true((n // 4) * 4 < 11)
    assert statically_known_false(n + 1 == 12)
    assert [str(a.expr) for a in env.deferred_runtime_asserts["u0"]] == ["u0 >= 2", "3*u0 < 31"]
    with pytest.raises(ValueError, match="it must"):
        cresset._check_value(n > 10, lambda: "it must")


def test_an_example_decides_and_leaves_a_guard(env):
    n = backed(env, 5)
    assert n > 3 and str(env.guards[0].expr) == "s0 > 3" and env.var_to_range["s0"] == ValueRanges(4, float("inf"))
    assert n > 2 and len(env.guards) == 1  # known from the first
    assert not is_concrete_int(n) and guard_int(n) == 5
    assert env.replacements == {"s0": 5} and str(n) == "5" and is_concrete_int(n) and range(n) == range(5)
    assert env.format_guards() == " - s0 > 3\n - Eq(s0, 5)"


def test_sizes_become_symbols_as_their_dimension_says(env):
    a, b, other = (backed(env, size, DimDynamic.DUCK) for size in (7, 7, 8))
    assert free_symbols([a, b]) == {"s0"} and free_symbols((other, 3)) == {"s1"}
    assert backed(env, 1, DimDynamic.DUCK) == 1 and backed(env, 9, DimDynamic.STATIC) == 9
    assert free_symbols(env.create_symbol(4, "x", DimDynamic.UNBACKED)) == {"u0"}
    limits = StrictMinMaxConstraint(warn_only=False, vr=ValueRanges(2, 6))
    env.create_symbol(4, "y", DimDynamic.DYNAMIC, limits)
    assert env.var_to_range["s2"] == ValueRanges(2, 6)
    with pytest.raises(ValueError, match="9 is not in"):
        env.create_symbol(9, "y", DimDynamic.DYNAMIC, limits)
    assert RelaxedUnspecConstraint(warn_only=False).warn_only is False


def test_a_range_can_be_said_without_a_check(env):
    n = env.create_unbacked_symint()
    constrain_range(n, min=1, max=4)
    assert optimization_hint(n) == 4 and optimization_hint(n, fallback=0) == 1
    with pytest.raises(ValueError, match="Invalid value 9"):
        constrain_range(9, min=1, max=4)


def test_conditions_are_joined_without_deciding(env):
    n, m = env.create_unbacked_symint(), env.create_unbacked_symint()
    both = sym_eq((n, 3), (m, 3))
    assert str(both) == "Eq(u0, u1)" and sym_eq((n, 3), (m, 4)) is False and sym_eq([1], [1, 2]) is False
    assert str((n > 1) & (m > 2)) == "And(u0 > 1, u1 > 2)" and env.guards == []
    constrain_range(n, min=2)
    assert statically_known_true((n > 1) | (m > 2))


def test_records_about_dimensions_hold_what_they_are_given():
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    assert context.dynamic_strides == [DimDynamic.INFER_STRIDE] * 2 and context.constraint_sizes == [None, None]
    assert DivideByKey(divisor=3).get(12) == 4 and str(DivideByKey(divisor=3)) == ".__floordiv__(3)"


def test_deferred_checks_become_nodes_behind_their_symbols(env):
    n = env.create_unbacked_symint()
    cresset._check(2 * n - 1 <= 9)
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = n
    graph.output(graph.call_function(cresset.sym_int, (x,)))
    module = fx.GraphModule({}, graph)
    insert_deferred_runtime_asserts(module, env, "test")
    module.recompile()
    assert module(5) == 5
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression 2\*u0 - 1 <= 9"):
        module(6)
