"""The negative binomial distribution."""

import cresset

from ..nn.functional import logsigmoid
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """How many trials succeed, each with probability `probs` (or sigmoid(`logits`)), before `total_count` have failed.

    >>> cresset.distributions.NegativeBinomial(3, probs=cresset.tensor([0.5])).mean
    tensor([3.])
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        if probs is not None:
            self._given, (total_count, self.probs) = "probs", broadcast_all(total_count, probs)
        else:
            self._given, (total_count, self.logits) = "logits", broadcast_all(total_count, logits)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, batch_shape, _instance)

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / cresset.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        # The rates of which Poisson counts are negative binomial. Not checked: a total_count of 0 is allowed here.
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        with cresset.no_grad():
            return cresset.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        total = self.total_count + value
        chance = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -total.lgamma() + (1.0 + value).lgamma() + self.total_count.lgamma()
        return chance - ways.masked_fill(total == 0.0, 0.0)
