"""Distribution: shapes, checks of parameters and samples, and the methods that every distribution may offer."""

import warnings

import cresset

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A family of random variables: a batch of distributions, each over events of one shape.

    A sample has the shape sample_shape + batch_shape + event_shape.

    Args:
        batch_shape: how many distributions there are, as a shape.
        event_shape: the shape of one draw from one of them.
        validate_args: check parameters and values; None: as `set_default_validate_args` says.

    >>> normal = cresset.distributions.Normal(cresset.zeros(3), 1.0)
    >>> normal.batch_shape, normal.event_shape, normal.sample((2,)).shape
    (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions check their arguments when it is not said at each; they do unless Python runs with
        -O."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=cresset.Size(), event_shape=cresset.Size(), validate_args=None):  # noqa: B008
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        name = self.__class__.__name__
        try:
            conditions = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                (
                    f"{name}: no arg_constraints to check the parameters with; define them ({{}} for none) or give "
                    "validate_args=False"
                ),
                stacklevel=3,
            )
            return
        for parameter, condition in conditions.items():
            if constraints.is_dependent(condition):
                continue
            if parameter not in self.__dict__ and isinstance(getattr(type(self), parameter), lazy_property):
                continue  # computed later, from one that is checked
            value = getattr(self, parameter)
            if not condition.check(value).all():
                raise ValueError(
                    f"Expected parameter {parameter} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {condition!r}, but found invalid values:\n{value}"
                )

    # ---------------------------------------------------------------- shapes

    @property
    def batch_shape(self):
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one draw from one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape=cresset.Size()):  # noqa: B008
        """The shape of a sample."""
        return cresset.Size(sample_shape) + self._batch_shape + self._event_shape

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger batch; the parameters are expanded and take no new memory."""
        raise NotImplementedError(f"{self.__class__.__name__}: expand is not implemented")

    def _get_checked_instance(self, cls, _instance=None):
        """The object that `cls.expand` fills: the one that a subclass passes, or a new one."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"{self.__class__.__name__}: a subclass of {cls.__name__} with its own __init__ needs its own expand, "
                "too"
            )
        return self.__new__(type(self))

    def _expanded(self, cls, batch_shape, _instance=None):
        """What `expand` of class `cls` is when the distribution is its parameters and nothing else."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = cresset.Size(batch_shape)
        batch_dims = len(self._batch_shape)
        parameters = cls.arg_constraints if isinstance(cls.arg_constraints, dict) else self.arg_constraints
        for name in parameters:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[batch_dims:]))
        return self._as_expanded(new, batch_shape)

    def _as_expanded(self, new, batch_shape):
        """`new`, whose parameters are there, as a distribution that was checked already."""
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    # ---------------------------------------------------------------- what is known of it

    @property
    def arg_constraints(self):
        """The constraint that each parameter satisfies, by name."""
        raise NotImplementedError(f"{self.__class__.__name__}: arg_constraints is not implemented")

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError(f"{self.__class__.__name__}: support is not implemented")

    @property
    def mean(self):
        """The expectation."""
        raise NotImplementedError(f"{self.__class__.__name__}: mean is not implemented")

    @property
    def mode(self):
        """The most likely value."""
        raise NotImplementedError(f"{self.__class__.__name__}: mode is not implemented")

    @property
    def variance(self):
        """The expected squared distance from the mean."""
        raise NotImplementedError(f"{self.__class__.__name__}: variance is not implemented")

    @property
    def stddev(self):
        """The square root of the variance."""
        return self.variance.sqrt()

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError(f"{self.__class__.__name__}: log_prob is not implemented")

    def cdf(self, value):
        """The probability of a draw that is at most `value`."""
        raise NotImplementedError(f"{self.__class__.__name__}: cdf is not implemented")

    def icdf(self, value):
        """The inverse of cdf: below which number is a draw with probability `value`?"""
        raise NotImplementedError(f"{self.__class__.__name__}: icdf is not implemented")

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along dimension 0, for the whole batch in step.

        With expand=False the batch dimensions have size 1.
        """
        raise NotImplementedError(f"{self.__class__.__name__}: enumerate_support is not implemented")

    def entropy(self):
        """The expectation of -log_prob, for each distribution of the batch."""
        raise NotImplementedError(f"{self.__class__.__name__}: entropy is not implemented")

    def perplexity(self):
        """exp of the entropy."""
        return self.entropy().exp()

    # ---------------------------------------------------------------- draws

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        """Draws, without gradients."""
        with cresset.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        """Draws as a differentiable function of the parameters."""
        raise NotImplementedError(f"{self.__class__.__name__}: rsample is not implemented")

    def sample_n(self, n):
        """`n` draws: the old form of sample((n,))."""
        warnings.warn("sample_n(n) will be deprecated. Use sample((n,)) instead.", FutureWarning, stacklevel=2)
        return self.sample(cresset.Size((n,)))

    def _validate_sample(self, value):
        """Check the shape and the values of what log_prob, cdf or icdf is given."""
        name = self.__class__.__name__
        if not isinstance(value, cresset.Tensor):
            raise ValueError(f"{name}: The value argument to log_prob must be a Tensor, got a {type(value).__name__}")
        shape, expected = value.shape, self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"{name}: The right-most size of value must match event_shape: {shape} vs {self._event_shape}."
            )
        for given, wanted in zip(reversed(shape), reversed(expected)):
            if given != wanted and given != 1 and wanted != 1:
                raise ValueError(
                    f"{name}: Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{name}: no support to check the value with; define it or give validate_args=False", stacklevel=3
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self):
        given = ((name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__)
        text = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given)
        return f"{self.__class__.__name__}({text})"


def _enumerated(values, distribution, expand):
    """Values along dimension 0 with the batch behind them: what enumerate_support gives for single numbers."""
    batch_shape = distribution._batch_shape
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1,) + tuple(batch_shape)) if expand else values
