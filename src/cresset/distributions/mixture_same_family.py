"""MixtureSameFamily: one of several distributions of the same kind, picked by a categorical one."""

import cresset

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: the components are the last batch dimension of `component_distribution`.

    >>> D = cresset.distributions
    >>> mixture = D.MixtureSameFamily(D.Categorical(cresset.ones(2)), D.Normal(cresset.tensor([-1.0, 3.0]), 1.0))
    >>> mixture.mean
    tensor(1.)
    """

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of torch.distributions.Categorical, got a "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "MixtureSameFamily: component_distribution must be a Distribution, got a "
                f"{type(component_distribution).__name__}"
            )
        batch, components = mixture_distribution.batch_shape, component_distribution.batch_shape
        for size, other in zip(reversed(batch), reversed(components[:-1])):
            if size != other and size != 1 and other != 1:
                raise ValueError(
                    f"MixtureSameFamily: the batch shapes of the mixture {tuple(batch)} and of the components "
                    f"{tuple(components[:-1])} do not broadcast"
                )
        count = mixture_distribution.logits.shape[-1]
        if components[-1] != count:
            raise ValueError(f"MixtureSameFamily: {count} weights for {components[-1]} components")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = count
        super().__init__(components[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = cresset.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        return self._as_expanded(new, batch_shape)

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The categorical distribution that picks a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    @property
    def _event_ndims(self):
        return len(self._event_shape)

    def _average(self, values):
        """The mean over the components of `values`, which end in them and the event."""
        probs = self.mixture_distribution.probs
        dims = len(self.mixture_distribution.batch_shape)
        missing = 0 if dims == 1 else len(self.batch_shape) - dims
        probs = probs.reshape(probs.shape[:-1] + (1,) * missing + probs.shape[-1:] + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self):
        return self._average(self.component_distribution.mean)

    @property
    def variance(self):
        """The mean of the variances plus the variance of the means."""
        components = self.component_distribution
        return self._average(components.variance) + self._average((components.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x):
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        weights = cresset.log_softmax(self.mixture_distribution.logits, -1)
        return (self.component_distribution.log_prob(self._pad(x)) + weights).logsumexp(-1)

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        with cresset.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            picked = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = picked.reshape(picked.shape + (1,) * (self._event_ndims + 1))
            index = index.repeat((1,) * picked.dim() + (1,) + tuple(self.event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
