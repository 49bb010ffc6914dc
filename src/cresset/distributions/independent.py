"""Independent: batch dimensions of a distribution, seen as parts of one event."""

import cresset

from . import constraints
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with its last `reinterpreted_batch_ndims` batch dimensions taken into the event.

    The draws stay the same; log_prob and entropy are summed over these dimensions.

    >>> D = cresset.distributions
    >>> normal = D.Independent(D.Normal(cresset.zeros(2, 3), 1.0), 1)
    >>> normal.batch_shape, normal.event_shape
    (torch.Size([2]), torch.Size([3]))
    """

    arg_constraints = {}

    def __class_getitem__(cls, item):
        return cls  # Independent[Normal] says the same to a type checker only

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        batch_shape = cresset.Size(batch_shape)
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._as_expanded(new, batch_shape)

    @property
    def has_rsample(self):
        """As the base."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        """As the base, when no dimension was taken."""
        return self.reinterpreted_batch_ndims <= 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        support = self.base_dist.support
        dims = self.reinterpreted_batch_ndims
        return constraints.independent(support, dims) if dims else support

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent: enumerating all combinations of the parts is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
