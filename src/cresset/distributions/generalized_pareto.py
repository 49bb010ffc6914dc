"""The generalized Pareto distribution."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """How far values go beyond `loc`: a heavy (concentration > 0), exponential (0) or bounded (< 0) tail.

    >>> cresset.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = cresset.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _tail(self):
        """Where the concentration is (close to) zero, and the concentration with a harmless 1 in its place there."""
        is_zero = cresset.isclose(self.concentration, cresset.zeros_like(self.concentration))
        return is_zero, cresset.where(is_zero, 1.0, self.concentration)

    @property
    def mean(self):
        """Defined for a concentration below 1, else nan."""
        exists = self.concentration < 1
        mean = self.loc + self.scale / (1 - cresset.where(exists, self.concentration, 0.5))
        return cresset.where(exists, mean, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        """Defined for a concentration below 1/2, else nan."""
        exists = self.concentration < 0.5
        concentration = cresset.where(exists, self.concentration, 0.25)
        variance = self.scale**2 / ((1 - concentration) ** 2 * (1 - 2 * concentration))
        return cresset.where(exists, variance, math.nan)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(cresset.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, concentration = self._tail()
        power = 1 / concentration + cresset.ones_like(z)
        decay = cresset.where(power == 0, power, power * (concentration * z).log1p())
        return -self.scale.log() - cresset.where(is_zero, z, decay)

    def log_survival_function(self, value):
        """The logarithm of 1 - cdf(value)."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, concentration = self._tail()
        return cresset.where(is_zero, -z, -(concentration * z).log1p() / concentration)

    def log_cdf(self, value):
        """The logarithm of cdf(value)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        is_zero, concentration = self._tail()
        log = (-value).log1p()
        heavy = self.loc + self.scale / concentration * (-concentration * log).expm1()
        return cresset.where(is_zero, self.loc - self.scale * log, heavy)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).broadcast_to(self._batch_shape)
