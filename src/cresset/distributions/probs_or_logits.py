"""ProbsOrLogits: the part of a distribution whose parameter is given as probabilities or as logits."""

from .utils import lazy_property, logits_to_probs, probs_to_logits


def check_one_is_given(distribution, probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError(
            f"{distribution.__class__.__name__}: Either `probs` or `logits` must be specified, but not both; got "
            f"{'none' if probs is None else 'both'}"
        )


class ProbsOrLogits:
    """Holds the one that was given as `_param`; the other one is computed when it is first read."""

    _is_binary = True

    @lazy_property
    def logits(self):
        """The logits of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self):
        return self.__dict__[self._given]

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    def _expanded(self, cls, batch_shape, _instance=None):
        new = self._get_checked_instance(cls, _instance)
        new._given = self._given
        return super()._expanded(cls, batch_shape, new)
