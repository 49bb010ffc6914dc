"""The Bernoulli distribution relaxed to numbers between 0 and 1, so that samples have gradients."""

import cresset

from . import constraints
from .distribution import Distribution
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """Logits of RelaxedBernoulli (Maddison 2017, Jang 2017): sharper, the lower the `temperature`.

    >>> D = cresset.distributions.relaxed_bernoulli
    >>> D.LogitRelaxedBernoulli(cresset.tensor([2.0]), probs=cresset.tensor([0.5])).log_prob(cresset.zeros(1))
    tensor([-0.6931])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        self.temperature = temperature
        if probs is not None:
            self._given, (self.probs,) = "probs", broadcast_all(probs)
        else:
            self._given, (self.logits,) = "logits", broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        return self._expanded(LogitRelaxedBernoulli, batch_shape, new)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(cresset.rand(shape, dtype=probs.dtype, device=probs.device))
        return (uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value.mul(self.temperature)
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that gather at the ends as the `temperature` falls, with gradients for `probs` or
    `logits`.

    >>> draw = cresset.distributions.RelaxedBernoulli(cresset.tensor([0.5]), probs=cresset.tensor([0.9])).rsample()
    >>> bool((draw > 0) & (draw < 1))
    True
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self):
        """How soft the draws are."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The logits of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probabilities."""
        return self.base_dist.probs
