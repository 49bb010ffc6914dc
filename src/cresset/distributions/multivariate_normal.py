"""The multivariate normal distribution."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix, vector):
    """Matrix times vector, batched."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, x):
    """|L⁻¹ x|², batched: xᵀ (L Lᵀ)⁻¹ x. The batch of x may be larger than that of L; each L is solved with once.

    The larger batch is sorted into right-hand sides: dimension d of x is (outer_d, batch_d of L), and everything
    outer goes into the columns of one triangular solve.
    """
    n = x.size(-1)
    batch, shape = tuple(factor.shape[:-2]), tuple(x.shape[:-1])
    first = len(shape) - len(batch)
    split = [part for whole, own in zip(shape[first:], batch) for part in (whole // own, own)]
    x = x.reshape(*shape[:first], *split, n)
    outer = [*range(first), *range(first, first + len(split), 2)]
    own = [*range(first + 1, first + len(split), 2)]
    columns = x.permute(*own, first + len(split), *outer).reshape(-1, n, math.prod(x.shape[d] for d in outer))
    solved = cresset.linalg.solve_triangular(factor.reshape(-1, n, n), columns, upper=False).pow(2).sum(-2)
    solved = solved.reshape([x.shape[d] for d in own + outer])
    back = sorted(range(len(own + outer)), key=(own + outer).__getitem__)
    return solved.permute(back).reshape(shape)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse: that of the matrix read backward, inverted."""
    flipped = cresset.linalg.cholesky(precision.flip(-2, -1))
    inverse = flipped.flip(-2, -1).transpose(-2, -1)
    unit = cresset.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return cresset.linalg.solve_triangular(inverse, unit, upper=False)


def _half_log_det(factor):
    """Half the log determinant of L Lᵀ."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors with mean `loc`.

    Exactly one of `covariance_matrix`, its inverse `precision_matrix` and its Cholesky factor `scale_tril` is given;
    the last one is the cheapest.

    >>> cresset.distributions.MultivariateNormal(cresset.zeros(2), cresset.eye(2)).log_prob(cresset.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: loc must have at least one dimension, got a 0-d tensor")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError(
                "MultivariateNormal: expected exactly one of covariance_matrix, precision_matrix and scale_tril, "
                f"got {', '.join(given) or 'none'}"
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"MultivariateNormal: {name} must have at least two dimensions, got shape {tuple(matrix.shape)}"
            )
        batch_shape = cresset.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cresset.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return self._expanded(MultivariateNormal, batch_shape, new)

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return self._whole(cresset.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        drawn = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        square = _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + square) - _half_log_det(factor)

    def entropy(self):
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (entropy + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
