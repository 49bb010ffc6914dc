"""Student's t distribution."""

import math

import cresset

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number divided by the root of a chi-squared one over its degrees of freedom `df`, then moved and scaled.

    >>> cresset.distributions.StudentT(cresset.tensor([4.0])).variance
    tensor([2.])
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(StudentT, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return self._expanded(StudentT, batch_shape, new)

    @property
    def mean(self):
        """Defined for df above 1, else nan."""
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        """Infinite for df up to 2, and undefined (nan) up to 1."""
        finite = self.df > 2
        df = cresset.where(finite, self.df, 3.0)  # a harmless number elsewhere, for the gradient
        variance = cresset.where(finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return variance.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        normal = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * (chi2 / self.df).rsqrt())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * self.df).lgamma()
            - (0.5 * (self.df + 1.0)).lgamma()
        )
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self):
        half, next_half = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - next_half.lgamma()
        return self.scale.log() + next_half * (next_half.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
