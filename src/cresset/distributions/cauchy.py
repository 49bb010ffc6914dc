"""The Cauchy distribution."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy (Lorentz) distribution with median `loc` and half width at half maximum `scale`; it has no mean.

    >>> cresset.distributions.Cauchy(0.0, 1.0).cdf(cresset.tensor(1.0))
    tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Cauchy, batch_shape, _instance)

    def _everywhere(self, number):
        return cresset.full(self._extended_shape(), number, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mean(self):
        """nan: the integral does not exist."""
        return self._everywhere(math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._everywhere(math.inf)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        drawn = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return cresset.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return cresset.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
