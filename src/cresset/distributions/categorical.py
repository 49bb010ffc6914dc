"""The categorical distribution."""

import cresset

from . import constraints
from .distribution import Distribution, _enumerated
from .probs_or_logits import ProbsOrLogits, check_one_is_given

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """An index below K, with K probabilities (`probs`, which are divided by their sum) or `logits` in the last
    dimension.

    >>> cresset.distributions.Categorical(cresset.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        check_one_is_given(self, probs, logits)
        self._given, parameter = ("probs", probs) if probs is not None else ("logits", logits)
        if parameter.dim() < 1:
            raise ValueError(f"Categorical: {self._given} must have at least one dimension, got a 0-d tensor")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Categorical, batch_shape, _instance)

    @property
    def _num_events(self):
        return self._param.size(-1)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        """nan: the indices are names, not numbers."""
        return cresset.full(self._extended_shape(), cresset.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    @property
    def variance(self):
        """nan: the indices are names, not numbers."""
        return self.mean

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        sample_shape = cresset.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = cresset.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = cresset.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        # An impossible category has logit -inf and adds 0 * -inf: the lowest finite number does as well.
        logits = self.logits.clamp(min=cresset.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = cresset.arange(self._num_events, dtype=cresset.long, device=self._param.device)
        return _enumerated(values, self, expand)
