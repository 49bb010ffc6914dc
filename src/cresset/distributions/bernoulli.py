"""The Bernoulli distribution."""

import cresset

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import _enumerated
from .exp_family import ExponentialFamily
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs` (or sigmoid(`logits`)), else 0.

    >>> cresset.distributions.Bernoulli(probs=cresset.tensor([0.25])).log_prob(cresset.ones(1)).exp()
    tensor([0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        if probs is not None:
            self._given, (self.probs,) = "probs", broadcast_all(probs)
        else:
            self._given, (self.logits,) = "logits", broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Bernoulli, batch_shape, _instance)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        """The likelier of 0 and 1; nan when they are equally likely."""
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, cresset.nan)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        with cresset.no_grad():
            return cresset.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = cresset.arange(2, dtype=self._param.dtype, device=self._param.device)
        return _enumerated(values, self, expand)

    @property
    def _natural_params(self):
        return (cresset.logit(self.probs),)

    def _log_normalizer(self, x):
        return x.exp().log1p()
