"""TransformedDistribution: draws of one distribution, carried through transforms."""

import cresset

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x) for x from `base_distribution` and f a transform or a list of them.

    With the density p of the base, log p(y) = log p(x) - log |det dy/dx|.

    >>> D = cresset.distributions
    >>> shifted = D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(loc=3.0, scale=1.0))
    >>> shifted.log_prob(cresset.tensor(3.0)) == D.Normal(3.0, 1.0).log_prob(cresset.tensor(3.0))
    tensor(True)
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"TransformedDistribution: expected a Transform or a list of them, got {transforms!r}")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"TransformedDistribution: the transform takes events of {whole.domain.event_dim} dimensions, "
                f"but the base distribution has shape {tuple(base_shape)}"
            )
        # Parameters of the transforms may broadcast with the base: then it has to grow.
        shape = whole.forward_shape(base_shape)
        grown = whole.inverse_shape(shape)
        if grown != base_shape:
            base_distribution = base_distribution.expand(grown[: len(grown) - base_event_dim])
        missing = whole.domain.event_dim - base_event_dim
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution

        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event_dim + change)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = cresset.Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._as_expanded(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self):
        """As the base."""
        return self.base_dist.has_rsample

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        with cresset.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        event_dim, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            total = total - _sum_rightmost(slope, event_dim - transform.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """`value`, or 1 - value where the transforms decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
