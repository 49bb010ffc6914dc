"""Regions in which parameters and samples lie. `check` says for each event of a tensor whether it is inside.

The names in lower case are what users write: instances (`positive`, `simplex`) or, where there are bounds to give,
classes (`interval(0, 1)`, `greater_than(2)`).
"""

import cresset

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region. `event_dim` trailing dimensions form one event; `is_discrete` says whether its points are apart.

    >>> cresset.distributions.constraints.positive.check(cresset.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0
    _bounds: tuple[str, ...] = ()  # names of attributes that __repr__ shows

    def check(self, value):
        """A tensor of booleans: which events of `value` are inside."""
        raise NotImplementedError(f"{self.__class__.__name__}: check is not implemented")

    def __repr__(self):
        bounds = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{self.__class__.__name__[1:]}({bounds})"


def _events(check, dims, event_dim, value):
    """Reduce the last `dims` dimensions of `check` by "all"."""
    if check.dim() < dims:
        raise ValueError(f"constraint: expected a value of at least {event_dim} dimensions, got {value.dim()}")
    return check.reshape(check.shape[: check.dim() - dims] + (-1,)).all(-1)


# ---------------------------------------------------------------- constraints that depend on other values


class _Dependent(Constraint):
    """A region that other values decide. What is known of it without them may be given."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    def _known(self, name):
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f"constraint: .{name} is not known without an instance")
        return value

    @property
    def is_discrete(self):
        return self._known("is_discrete")

    @property
    def event_dim(self):
        return self._known("event_dim")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("constraint: a dependent constraint cannot be checked without an instance")


def is_dependent(constraint):
    """Whether the constraint depends on other values, so that it cannot be checked alone.

    >>> cresset.distributions.constraints.is_dependent(cresset.distributions.constraints.positive)
    False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that, read from the class, is a dependent constraint.

    class Uniform(Distribution):
        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(self.low, self.high)
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ---------------------------------------------------------------- constraints made of others


def _expect_constraints(constraints):
    for each in constraints:
        if not isinstance(each, Constraint):
            raise AssertionError(f"constraint: expected a Constraint, got a {type(each).__name__}")


class _IndependentConstraint(Constraint):
    """An event is inside when all of its parts are: takes trailing batch dimensions of a constraint into the event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        _expect_constraints([base_constraint])
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                "constraint: expected reinterpreted_batch_ndims to be an int of at least 0, got "
                f"{reinterpreted_batch_ndims!r}"
            )
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        return _events(self.base_constraint.check(value), self.reinterpreted_batch_ndims, self.event_dim, value)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: a value is inside when it is for every component, which form the last batch
    dimension."""

    def __init__(self, base_constraint):
        _expect_constraints([base_constraint])
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"constraint: expected a value of at least {self.event_dim} dimensions, got {value.dim()}")
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return inside.reshape(inside.shape[: value.dim() - self.event_dim] + (-1,)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Parts(Constraint):
    """Several constraints, one for each part of a value along `dim`."""

    def __init__(self, cseq, dim):
        _expect_constraints(cseq)
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    @property
    def is_discrete(self):
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self):
        return max(part.event_dim for part in self.cseq)

    def _expect_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"constraint: dim {self.dim} is out of range for a value of {value.dim()} dimensions")


class _Cat(_Parts):
    """Constraints for consecutive pieces along `dim`, of the given lengths (1 each), as `cat` joins them."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"cat: {len(self.cseq)} constraints need as many lengths, got {len(self.lengths)}")

    def check(self, value):
        self._expect_dim(value)
        checks, start = [], 0
        for part, length in zip(self.cseq, self.lengths):
            checks.append(part.check(value.narrow(self.dim, start, length)))
            start += length
        return cresset.cat(checks, self.dim)


class _Stack(_Parts):
    """Constraints for the slices along `dim`, as `stack` joins them."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        self._expect_dim(value)
        return cresset.stack([part.check(v) for part, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


# ---------------------------------------------------------------- numbers


class _Real(Constraint):
    """Any number, nan excepted."""

    def check(self, value):
        return value == value


class _Lower(Constraint):
    _bounds = ("lower_bound",)

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound
        super().__init__()


class _Upper(Constraint):
    _bounds = ("upper_bound",)

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        super().__init__()


class _Both(Constraint):
    _bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()


class _GreaterThan(_Lower):
    """Above the lower bound."""

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Lower):
    """At or above the lower bound."""

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Upper):
    """Below the upper bound."""

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Both):
    """From the lower to the upper bound, both included."""

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Both):
    """From the lower bound up to, but without, the upper one."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _IntegerInterval(_Both):
    """Whole numbers from the lower to the upper bound, both included."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Upper):
    """Whole numbers up to the upper bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Lower):
    """Whole numbers from the lower bound on."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


# ---------------------------------------------------------------- vectors


class _OneHot(Constraint):
    """Vectors with a single 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers that add up to one."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative counts that add up to at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# ---------------------------------------------------------------- matrices


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: their rows have length one."""

    def check(self, value):
        tolerance = cresset.finfo(value.dtype).eps * value.size(-1) * 10
        length = cresset.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & ((length - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        is_square = value.shape[-2] == value.shape[-1]
        return cresset.full(value.shape[:-2], is_square, dtype=cresset.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value):
        is_square = super().check(value)
        return cresset.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if is_square.all() else is_square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalue."""

    def check(self, value):
        is_symmetric = super().check(value)
        return (cresset.linalg.eigvalsh(value) >= 0).all(-1) if is_symmetric.all() else is_symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value):
        is_symmetric = super().check(value)
        return cresset.linalg.cholesky_ex(value).info == 0 if is_symmetric.all() else is_symmetric


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
