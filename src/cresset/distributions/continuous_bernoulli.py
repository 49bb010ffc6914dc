"""The continuous Bernoulli distribution."""

import math

import cresset

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .exp_family import ExponentialFamily
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers x between 0 and 1 with a density proportional to probs^x (1 - probs)^(1 - x).

    Args:
        lims: between these probabilities, where the formulas divide zero by zero, Taylor series around 1/2 are used.

    >>> cresset.distributions.ContinuousBernoulli(cresset.tensor([0.5])).mean
    tensor([0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        check_one_is_given(self, probs, logits)
        if probs is not None:
            self._given, (probs,) = "probs", broadcast_all(probs)
            # Checked before it is clamped: afterwards everything is valid.
            if validate_args is not None and not constraints.unit_interval.check(probs).all():
                raise ValueError(f"ContinuousBernoulli: expected probs between 0 and 1, got\n{probs}")
            self.probs = clamp_probs(probs)
        else:
            self._given, (self.logits,) = "logits", broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return self._expanded(ContinuousBernoulli, batch_shape, new)

    @lazy_property
    def probs(self):
        """The probabilities that the discrete distribution of the same name would have."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        """The probabilities, or a harmless one where the Taylor series is used."""
        return cresset.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _or_taylor(self, exact, taylor):
        return cresset.where(self._outside_unstable_region(), exact, taylor)

    def _cont_bern_log_norm(self):
        """log of 2 artanh(1 - 2 p) / (1 - 2 p)."""
        cut = self._cut_probs()
        is_low = cut <= 0.5
        low, high = cresset.where(is_low, cut, 0.0), cresset.where(cut >= 0.5, cut, 1.0)
        distance = cresset.where(is_low, (-2.0 * low).log1p(), (2.0 * high - 1.0).log())
        exact = ((-cut).log1p() - cut.log()).abs().log() - distance
        x = (self.probs - 0.5).pow(2)
        return self._or_taylor(exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = self.probs - 0.5
        return self._or_taylor(exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self):
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return self._or_taylor(exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(cresset.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        exact = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = self._or_taylor(exact, value)
        return cresset.where(value <= 0.0, 0.0, cresset.where(value >= 1.0, 1.0, inside))

    def icdf(self, value):
        cut = self._cut_probs()
        exact = ((-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()) / (cut.log() - (-cut).log1p())
        return self._or_taylor(exact, value)

    def entropy(self):
        log_zero, log_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = cresset.where(outside, x, self._lims[0] - 0.5)
        exact = cut.expm1().abs().log() - cut.abs().log()
        return cresset.where(outside, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
