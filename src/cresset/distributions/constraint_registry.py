"""From unconstrained numbers into a constraint: `biject_to` one to one, `transform_to` whichever way optimizes well.

transform = transform_to(constraints.simplex)
probabilities = transform(cresset.zeros(3))     # may be optimized freely in front of the transform
"""

from . import constraints, transforms
from .utils import _NUMBER

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms by the class of the constraint that they lead into.

    >>> cresset.distributions.biject_to(cresset.distributions.constraints.unit_interval)
    SigmoidTransform()
    """

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Use `factory(constraint)` for constraints of this class; without `factory`, a decorator for it."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"register: expected a Constraint or a subclass of it, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        """The transform into `constraint`."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform into {type(constraint).__name__} constraints is registered")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _into(*kinds, by=(biject_to, transform_to)):
    """Register a factory for several constraints, in both registries unless said otherwise."""

    def decorator(factory):
        for registry in by:
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return decorator


@_into(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_into(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_into(constraints.less_than)
def _below(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_into(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, _NUMBER) and isinstance(high, _NUMBER) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


_into(constraints.simplex, by=[biject_to])(lambda constraint: transforms.StickBreakingTransform())
_into(constraints.simplex, by=[transform_to])(lambda constraint: transforms.SoftmaxTransform())
_into(constraints.corr_cholesky)(lambda constraint: transforms.CorrCholeskyTransform())
_into(constraints.lower_cholesky, by=[transform_to])(lambda constraint: transforms.LowerCholeskyTransform())
_into(constraints.positive_definite, constraints.positive_semidefinite, by=[transform_to])(
    lambda constraint: transforms.PositiveDefiniteTransform()
)


def _parts(registry):
    """Constraints made of others are reached part by part."""

    @registry.register(constraints.independent)
    def _independent(constraint):
        return transforms.IndependentTransform(
            registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )

    @registry.register(constraints.cat)
    def _cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_parts(biject_to)
_parts(transform_to)
