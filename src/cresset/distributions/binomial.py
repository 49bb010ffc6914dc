"""The binomial distribution."""

import cresset

from . import constraints
from .distribution import Distribution, _enumerated
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .utils import broadcast_all

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` (or sigmoid(`logits`)).

    >>> cresset.distributions.Binomial(4, probs=cresset.tensor([0.5])).mean
    tensor([2.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        if probs is not None:
            self._given, (total_count, self.probs) = "probs", broadcast_all(total_count, probs)
        else:
            self._given, (total_count, self.logits) = "logits", broadcast_all(total_count, logits)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Binomial, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with cresset.no_grad():
            return cresset.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        count, logits = self.total_count, self.logits
        # max(logits, 0) whose gradient at 0 is one half
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        normalizer = count * positive + count * (-logits.abs()).exp().log1p() - (count + 1).lgamma()
        return value * logits - (value + 1).lgamma() - (count - value + 1).lgamma() - normalizer

    def _one_total_count(self, method):
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise NotImplementedError(f"Binomial: {method} needs the same total_count in the whole batch")
        return count

    def entropy(self):
        self._one_total_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = self._one_total_count("enumerate_support")
        values = cresset.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return _enumerated(values, self, expand)
