"""The geometric distribution."""

import cresset

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import Distribution
from .probs_or_logits import ProbsOrLogits, check_one_is_given
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """How many trials fail before the first success of probability `probs` (or sigmoid(`logits`)).

    >>> cresset.distributions.Geometric(cresset.tensor([0.25])).mean
    tensor([3.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        if probs is not None:
            self._given, (self.probs,) = "probs", broadcast_all(probs)
        else:
            self._given, (self.logits,) = "logits", broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"Geometric: expected probs above 0, else no success ever comes; got\n{self.probs}")

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, batch_shape, _instance)

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return cresset.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        with cresset.no_grad():
            uniform = self.probs.new_empty(self._extended_shape(sample_shape))
            uniform.uniform_(cresset.finfo(self.probs.dtype).tiny, 1)
            return (uniform.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failing = probs.masked_fill((probs == 1) & (value == 0), 0.0)  # 0 * log(0) is 0 here
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
