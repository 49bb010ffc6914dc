"""ExponentialFamily: densities h(x) exp(t(x)·θ - F(θ)), whose entropy and divergences follow from F alone."""

import cresset

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with natural parameters θ and log normalizer F(θ).

    A subclass gives `_natural_params`, `_log_normalizer` and, for the entropy, `_mean_carrier_measure` E[log h(x)].
    """

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{self.__class__.__name__}: _natural_params is not implemented")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{self.__class__.__name__}: _log_normalizer is not implemented")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{self.__class__.__name__}: _mean_carrier_measure is not implemented")

    def entropy(self):
        """F(θ) - θ·∇F(θ) - E[log h(x)]."""
        parameters, normalizer, gradients = self._normalizer_and_gradients()
        result = -self._mean_carrier_measure + normalizer
        for parameter, gradient in zip(parameters, gradients):
            result = result - (parameter * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result

    def _normalizer_and_gradients(self):
        """The natural parameters as new leaves, F at them and ∇F."""
        parameters = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, cresset.autograd.grad(normalizer.sum(), parameters, create_graph=True)
