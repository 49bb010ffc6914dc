"""Symbols for sizes: an environment that makes them, what is known of their ranges, and questions that do not decide
more than they have to.

Tensors here have plain sizes; programs with free sizes are recorded several times instead (see `graph/sizes.py`). What
is here reasons about SymInts that programs make themselves.
"""

import dataclasses
import enum

from ...pytree import tree_leaves
from ...tensors.symbolic import SymBool, SymInt
from .formulas import Condition, Formula, ValueRanges, int_oo
from .sym_node import SymNode

__all__ = [
    "CallMethodKey", "Constraint", "ConvertIntKey", "DimDynamic", "DivideByKey", "GuardOnDataDependentSymNode",
    "InnerTensorKey", "RelaxedUnspecConstraint", "RuntimeAssert", "ShapeEnv", "ShapeGuard", "StatelessSymbolicContext",
    "StrictMinMaxConstraint", "SymbolicContext", "ValueRanges", "constrain_range", "free_symbols",
    "free_unbacked_symbols",
    "guard_bool", "guard_int", "guard_or_false", "guard_or_true", "guard_scalar", "guarding_hint_or_throw",
    "has_free_symbols", "has_free_unbacked_symbols", "is_concrete_bool", "is_concrete_int", "is_nested_int",
    "is_symbolic",
    "optimization_hint", "statically_known_false", "statically_known_true", "sym_and", "sym_eq", "sym_or",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """A question whose answer depends on a symbol without an example.

    Args:
        cond: what was asked.
    """

    def __init__(self, cond, message):
        super().__init__(message)
        self.cond = cond


# ---------------------------------------------------------------- how dimensions are


class DimDynamic(enum.Enum):
    """How a dimension becomes a symbol: DYNAMIC always one of its own, DUCK the same for the same size (and none for 0
    and 1), STATIC none, UNBACKED one without an example, INFER_STRIDE a stride that follows from the sizes.
    """

    DYNAMIC, DUCK, STATIC, UNBACKED, INFER_STRIDE = range(5)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """What a program demands of a dimension; `warn_only` makes a violation no error."""

    warn_only: bool


@dataclasses.dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """The dimension has all sizes of the range `vr`, and no guard narrows it."""

    vr: ValueRanges

    def render(self, source):
        return f"{self.vr.lower} <= {source.name()} <= {self.vr.upper}"


@dataclasses.dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """The dimension is not just one size."""

    def render(self, source):
        return f"RelaxedUnspecConstraint({source.name()})"


@dataclasses.dataclass(frozen=True)
class SymbolicContext:
    """How the sizes of one tensor become symbols."""


@dataclasses.dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """How each size and stride becomes a symbol, and what is demanded of it."""

    dynamic_sizes: list
    dynamic_strides: list = None  # type: ignore[assignment]
    constraint_sizes: list = None  # type: ignore[assignment]
    constraint_strides: list = None  # type: ignore[assignment]
    specialize_on: list | None = None
    view_base_context: SymbolicContext | None = None
    shape_ids: dict | None = None
    unbacked_bounds: dict | None = None

    def __post_init__(self):
        count = len(self.dynamic_sizes)
        for name, value in (
            ("specialize_on", [[] for _ in range(count)]),
            ("dynamic_strides", [DimDynamic.INFER_STRIDE] * count),
            ("constraint_sizes", [None] * count),
            ("constraint_strides", [None] * count),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)


# ---------------------------------------------------------------- where a symbol's number is found in a result


@dataclasses.dataclass(frozen=True)
class CallMethodKey:
    """What a method of the value gives."""

    name: str

    def __str__(self):
        return f".{self.name}()"

    def get(self, o):
        return getattr(o, self.name)()


@dataclasses.dataclass(frozen=True)
class InnerTensorKey:
    """An attribute of the value."""

    inner_name: str

    def __str__(self):
        return f".{self.inner_name}"

    def get(self, o):
        return getattr(o, self.inner_name)


@dataclasses.dataclass(frozen=True)
class DivideByKey:
    """The value divided by a number."""

    divisor: int

    def __str__(self):
        return f".__floordiv__({self.divisor})"

    def get(self, o):
        return o // self.divisor


@dataclasses.dataclass(frozen=True)
class ConvertIntKey:
    """A bool as 0 or 1."""

    def __str__(self):
        return ".cast_symbool_to_symint_guardless()"

    def get(self, b):
        return int(b)


# ---------------------------------------------------------------- the environment


@dataclasses.dataclass(frozen=True)
class ShapeGuard:
    """A condition that was decided by examples: what was concluded holds only where it does."""

    expr: object


@dataclasses.dataclass(frozen=True)
class RuntimeAssert:
    """A condition that the program itself demands (`torch._check`), with its message."""

    expr: object
    msg: str = ""


class ShapeEnv:
    """Symbols, their examples, what is known of their ranges, and the guards that decisions left behind.

    Args:
        duck_shape: whether dimensions of one size share a symbol.
        specialize_zero_one: whether the sizes 0 and 1 are numbers and no symbols.
        allow_scalar_outputs, allow_dynamic_output_shape_ops: kept for who asks; no tensor here has a size that is a
            symbol, so no operator makes one.

    >>> from cresset.fx.experimental.symbolic_shapes import ShapeEnv, statically_known_true
    >>> env = ShapeEnv()
    >>> n = env.create_unbacked_symint()
    >>> cresset._check(n >= 2)
    >>> statically_known_true(3 * n > 5), env.var_to_range
    (True, {'u0': VR[2, int_oo]})
    """

    def __init__(
        self,
        *,
        duck_shape=True,
        specialize_zero_one=True,
        allow_scalar_outputs=True,
        allow_dynamic_output_shape_ops=True,
    ):
        self.duck_shape, self.specialize_zero_one = duck_shape, specialize_zero_one
        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops
        self.guards, self.replacements, self.deferred_runtime_asserts = [], {}, {}
        self.var_to_val, self.var_to_range, self.var_to_sources, self.var_to_constraint = {}, {}, {}, {}
        self._by_size, self._unbacked = {}, 0

    # ---- symbols

    def create_symbol(
        self, val, source, dynamic_dim=DimDynamic.DUCK, constraint_dim=None, positive=True,
        do_not_specialize_zero_one=False,
    ):  # fmt: skip
        """The formula of a dimension of size `val`: a symbol of its own, or one that it shares, or the number."""
        if isinstance(constraint_dim, StrictMinMaxConstraint) and val not in constraint_dim.vr:
            raise ValueError(f"create_symbol: {val} is not in {constraint_dim.vr}, which is demanded of {source}")
        if dynamic_dim is DimDynamic.UNBACKED:
            symbol = self.create_unbacked_symint(source).node._expr
            if isinstance(constraint_dim, StrictMinMaxConstraint):
                (name,) = symbol.symbols()
                self._narrow(name, constraint_dim.vr)
            return symbol
        duck = dynamic_dim is DimDynamic.DUCK
        is_number = duck and val in (0, 1) and self.specialize_zero_one and not do_not_specialize_zero_one
        if dynamic_dim is DimDynamic.STATIC or is_number:
            return Formula.of(val)
        if duck and self.duck_shape and val in self._by_size:
            name = self._by_size[val]
        else:
            name = f"s{len(self.var_to_val)}"
            self.var_to_val[name] = val
            specialized = self.specialize_zero_one and not do_not_specialize_zero_one
            self.var_to_range[name] = ValueRanges((2 if specialized else 0) if positive else -int_oo, int_oo)
            if duck:
                self._by_size[val] = name
        self.var_to_sources.setdefault(name, []).append(source)
        if constraint_dim is not None:
            self.var_to_constraint[name] = constraint_dim
            if isinstance(constraint_dim, StrictMinMaxConstraint):
                self._narrow(name, constraint_dim.vr)
        return Formula.of(name)

    def create_symintnode(self, sym, *, hint, source=None):
        """The SymInt of a formula; an int if the formula is a number."""
        constant = sym.constant()
        if constant is not None:
            if hint is not None and hint != constant:
                raise AssertionError(f"create_symintnode: the example is {hint}, the formula is {constant}")
            return constant
        for name in sym.symbols() if source is not None else ():
            known = self.var_to_sources.setdefault(name, [])
            known += [source] if source not in known else []
        return SymInt(SymNode(sym, self))

    def create_unbacked_symint(self, source=None):
        """A new symbol without an example, of which nothing is known."""
        name = f"u{self._unbacked}"
        self._unbacked += 1
        self.var_to_range[name] = ValueRanges(-int_oo, int_oo)
        self.var_to_sources[name] = [] if source is None else [source]
        return SymInt(SymNode(Formula.of(name), self))

    def create_unbacked_symbool(self):
        """A condition of which nothing is known: that a new symbol of 0 or 1 is 1."""
        number = self.create_unbacked_symint()
        (name,) = number.node._expr.symbols()
        self._narrow(name, ValueRanges(0, 1))
        return SymBool(SymNode(Condition("eq", number.node._expr, Formula.of(1)), self))

    def is_unbacked_symint(self, symbol):
        """Whether a symbol has no example."""
        return str(symbol) not in self.var_to_val

    # ---- what is known

    def replace(self, expr):
        """The formula with the numbers of symbols that are known."""
        if not self.replacements:
            return expr
        if isinstance(expr, Formula):
            return expr.replaced(self.replacements)
        if isinstance(expr, Condition):
            return Condition(expr.kind, self.replace(expr.a), self.replace(expr.b))
        return expr

    simplify = replace

    def example(self, expr):
        """The value for the symbols' examples, None if one has none."""
        expr = self.replace(expr)
        return expr.value(self.var_to_val) if expr.symbols() <= set(self.var_to_val) else None

    def size_hint(self, expr, *, allow_none=False):
        """The value for the symbols' examples; without one, None if that is allowed."""
        found = self.example(Formula.of(expr) if isinstance(expr, int) else expr)
        if found is None and not allow_none:
            raise self._undecided(expr, "extract an example of")
        return found

    def bound_sympy(self, expr):
        """The range of a formula."""
        return ValueRanges(*self.replace(expr).range(self.var_to_range))

    def _known(self, expr):
        expr = self.replace(expr)
        return expr if isinstance(expr, bool) else expr.known(self.var_to_range)

    def _undecided(self, expr, verb):
        return GuardOnDataDependentSymNode(
            expr,
            f"Could not {verb} data-dependent expression {expr}: it depends on a symbol without an example. "
            "guard_or_false, guard_or_true and statically_known_true decide without it, torch._check says what holds",
        )

    def evaluate_expr(self, expr):
        """The truth of a condition or the number of a formula, by what is known or by the examples; the latter leaves a
        guard.
        """
        expr = self.replace(expr)
        if isinstance(expr, Formula):
            value = self.example(expr)
            if value is None:
                raise self._undecided(expr, "extract specialized integer from")
            if expr.constant() is None:
                self._guard(Condition("eq", expr, Formula.of(value)))
            return value
        known = self._known(expr)
        if known is not None:
            return known
        value = self.example(expr)
        if value is None:
            raise self._undecided(expr, "guard on")
        self._guard(expr if value else expr.negated())
        return value

    def _guard(self, condition):
        self.guards.append(ShapeGuard(condition))
        self._learn(condition)

    def guard_or_defer_runtime_assert(self, expr, msg=""):
        """What a program demands: decided now where it can be, otherwise noted, and taken for true from here on."""
        known = self._known(expr)
        if known is None and self.example(expr) is None:
            for name in sorted(expr.symbols()):
                self.deferred_runtime_asserts.setdefault(name, []).append(RuntimeAssert(expr, msg))
            self._learn(expr)
            return True
        return self.evaluate_expr(expr)

    def _learn(self, condition):
        """Narrow the ranges of symbols by a condition that holds."""
        if condition.kind == "And":
            for part in (condition.a, condition.b):
                if not isinstance(part, bool):
                    self._learn(part)
            return
        if condition.kind in ("Or", "ne"):
            return
        difference = condition.a - condition.b
        names = [product for product in difference.terms if product]
        if len(names) != 1 or len(names[0]) != 1 or not isinstance(names[0][0], str):
            return
        (name,), factor, rest = names[0], difference.terms[names[0]], difference.terms.get((), 0)
        kind = condition.kind
        if factor < 0:
            factor, rest = -factor, -rest
            kind = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(kind, kind)
        # factor * name + rest compared with 0, factor > 0
        if kind in ("le", "lt"):
            self._narrow(name, ValueRanges(-int_oo, (-rest - (kind == "lt")) // factor))
        elif kind in ("ge", "gt"):
            self._narrow(name, ValueRanges(-((rest - (kind == "gt")) // factor), int_oo))
        elif rest % factor == 0:
            self._narrow(name, ValueRanges(-rest // factor, -rest // factor))

    def _narrow(self, name, limits):
        self.var_to_range[name] = found = self.var_to_range[name] & limits
        if found.is_singleton():
            self.replacements[name] = found.lower

    def format_guards(self):
        """The guards, one a line."""
        return "\n".join(f" - {guard.expr}" for guard in self.guards)


# ---------------------------------------------------------------- questions


def _env(value):
    return value.node.shape_env


def is_symbolic(val):
    """Whether a number is a formula of symbols, and no plain number.

    >>> from cresset.fx.experimental.symbolic_shapes import is_symbolic
    >>> is_symbolic(3)
    False
    """
    return isinstance(val, (SymInt, SymBool))


def is_nested_int(val):
    """Whether a number is the size of a ragged dimension.

    >>> from cresset.fx.experimental.symbolic_shapes import is_nested_int
    >>> is_nested_int(3)
    False
    """
    from ...nested.sizes import RaggedSize

    return isinstance(val, RaggedSize)


def is_concrete_int(a):
    """Whether a number is a plain one, or a formula that is one by now."""
    return isinstance(a, int) or (isinstance(a, SymInt) and a.node.maybe_as_int() is not None)


def is_concrete_bool(a):
    """Whether a condition is a plain bool."""
    return isinstance(a, bool)


def statically_known_true(x):
    """Whether a condition is true whatever the symbols are. Nothing is decided, no guard is left."""
    return _env(x)._known(x.node.expr) is True if isinstance(x, SymBool) else bool(x)


def statically_known_false(x):
    """Whether a condition is false whatever the symbols are."""
    return _env(x)._known(x.node.expr) is False if isinstance(x, SymBool) else not x


def guard_or_false(a):
    """The truth of a condition, as a guard if the symbols have examples; False if that cannot be said."""
    return _guard_or(a, False)


def guard_or_true(a):
    """The truth of a condition, as a guard if the symbols have examples; True if that cannot be said."""
    return _guard_or(a, True)


def _guard_or(a, default):
    if not isinstance(a, SymBool):
        return bool(a)
    env, expr = _env(a), a.node.expr
    known = env._known(expr)
    if known is None and env.example(expr) is None:
        return default
    return env.evaluate_expr(expr)


def guard_bool(a):
    """The truth of a condition, which becomes a guard."""
    return bool(a)


def guard_int(a):
    """The number of a formula, which becomes a guard."""
    return int(a)


def guard_scalar(a):
    """The value of a number or condition, which becomes a guard."""
    return bool(a) if isinstance(a, (bool, SymBool)) else int(a) if isinstance(a, (int, SymInt)) else a


def guarding_hint_or_throw(a):
    """The value for the symbols' examples, without a guard; an error if there is none."""
    if not is_symbolic(a):
        return a
    found = a.node.hint
    if found is None:
        raise _env(a)._undecided(a.node.expr, "extract an example of")
    return found


def optimization_hint(a, fallback=None):
    """The value for the symbols' examples, or the nearest to `fallback` that its range has."""
    if not is_symbolic(a):
        return a
    found = a.node.hint
    if found is not None:
        return found
    limits = _env(a).bound_sympy(a.node.expr)
    return int(min(max(8192 if fallback is None else fallback, limits.lower), limits.upper))


def constrain_range(a, *, min, max=None):
    """Say that a number is between `min` and `max`."""
    high = int_oo if max is None else max
    low = -int_oo if min is None else min
    if not isinstance(a, SymInt):
        if not low <= a <= high:
            raise ValueError(f"Invalid value {a} for range [{low}:{high}]")
        return
    env = _env(a)
    for kind, limit in (("ge", low), ("le", high)):
        if abs(limit) != int_oo:
            env._learn(Condition(kind, a.node.expr, Formula.of(limit)))


def _formulas(val):
    for leaf in tree_leaves(val):
        if is_symbolic(leaf):
            yield leaf.node.expr
        elif isinstance(leaf, (Formula, Condition)):
            yield leaf


def free_symbols(val):
    """The names of the symbols in a number, or in all numbers of a container."""
    return set().union(*(expr.symbols() for expr in _formulas(val)))


def free_unbacked_symbols(val):
    """The names of the symbols that have no example."""
    return {name for name in free_symbols(val) if name.startswith("u")}


def has_free_symbols(val):
    """Whether a number, or one of a container, depends on a symbol."""
    return bool(free_symbols(val))


def has_free_unbacked_symbols(val):
    """Whether a number, or one of a container, depends on a symbol without an example."""
    return bool(free_unbacked_symbols(val))


def sym_and(x, *others):
    """x and all others, without deciding any.

    >>> from cresset.fx.experimental.symbolic_shapes import sym_and, sym_or
    >>> sym_and(True, False), sym_or(True, False)
    (False, True)
    """
    for other in others:
        x = x & other
    return x


def sym_or(x, *others):
    """x or one of the others, without deciding any."""
    for other in others:
        x = x | other
    return x


def sym_eq(x, y):
    """x == y, for lists and tuples of numbers too, without deciding."""
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return False if len(x) != len(y) else sym_and(True, *map(sym_eq, x, y))
    return x == y
