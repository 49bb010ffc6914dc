"""The Wishart distribution of positive definite matrices."""

import math
import warnings

import cresset

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _half_log_det, _precision_to_scale_tril
from .utils import _NUMBER, lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of the multivariate log gamma function."""
    if not (x > (p - 1) / 2).all():
        raise AssertionError(f"the multivariate digamma function needs arguments above {(p - 1) / 2}")
    return (x.unsqueeze(-1) - cresset.arange(p, dtype=x.dtype, device=x.device) / 2).digamma().sum(-1)


class Wishart(ExponentialFamily):
    """The sum of `df` outer products x xᵀ of normal vectors with the given covariance.

    Exactly one of `covariance_matrix`, its inverse `precision_matrix` and its Cholesky factor `scale_tril` is given.
    Draws are made by Bartlett's decomposition.

    >>> cresset.distributions.Wishart(cresset.tensor(3.0), cresset.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError(
                "Wishart: expected exactly one of covariance_matrix, precision_matrix and scale_tril, "
                f"got {', '.join(given) or 'none'}"
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"Wishart: {name} must have at least two dimensions, got shape {tuple(matrix.shape)}")
        if isinstance(df, _NUMBER):
            batch_shape = cresset.Size(matrix.shape[:-2])
            self.df = cresset.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = cresset.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        size = matrix.shape[-1]
        if (self.df <= size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        if (self.df < size).any():
            warnings.warn(f"Wishart: with df below {size}, singular draws are likely", stacklevel=2)
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cresset.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = cresset.Size(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self.event_shape)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape + self.event_shape))
        return self._as_expanded(new, batch_shape)

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @lazy_property
    def _dist_chi2(self):
        factor = self._unbroadcasted_scale_tril
        rows = cresset.arange(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return Chi2(df=self.df.expand(self._batch_shape).unsqueeze(-1) - rows.expand(self._batch_shape + (-1,)))

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance of the normal vectors."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        unit = cresset.eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return self._whole(cresset.cholesky_solve(unit, factor))

    def _times_covariance(self, factor):
        return factor.expand(self._batch_shape).view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mean(self):
        return self._times_covariance(self.df)

    @property
    def mode(self):
        """Defined for df above the size plus one, else nan."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._times_covariance(factor.masked_fill(factor <= 0, math.nan))

    @property
    def variance(self):
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.expand(self._batch_shape).view(self._batch_shape + (1, 1)) * (covariance.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape=cresset.Size()):  # noqa: B008
        """L A Aᵀ Lᵀ with A lower triangular: roots of chi-squared numbers on the diagonal, normal numbers below."""
        p = self._event_shape[-1]
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        triangle = diagonal.clamp(min=cresset.finfo(diagonal.dtype).eps).diag_embed()
        shape = cresset.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        rows, columns = cresset.tril_indices(p, p, offset=-1)
        triangle[..., rows, columns] = cresset.randn(shape, dtype=triangle.dtype, device=triangle.device)
        factor = self._unbroadcasted_scale_tril @ triangle
        return factor @ factor.mT

    def _any_of_batch(self, flags):
        return flags.amax([-1 - dim for dim in range(len(self._batch_shape))]) if self._batch_shape else flags

    def rsample(self, sample_shape=cresset.Size(), max_try_correction=None):  # noqa: B008
        sample_shape = cresset.Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # PyTorch draws once more what is positive definite already, and again, up to `max_try_correction` times, what
        # is not. Doing the same gives the same matrices for the same seed; both draws have the same distribution.
        again = self._any_of_batch(self.support.check(sample))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            redrawn = self._bartlett_sampling(again[again].shape)
            sample[again] = redrawn
            again = again.masked_scatter(again, self._any_of_batch(~self.support.check(redrawn)))
        return sample

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        df, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        return (
            -df * (p * math.log(2) / 2 + _half_log_det(factor))
            - cresset.mvlgamma(df / 2, p=p)
            + (df - p - 1) / 2 * cresset.linalg.slogdet(value).logabsdet
            - cresset.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self):
        df, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
            + cresset.mvlgamma(df / 2, p=p)
            - (df - p - 1) / 2 * _mvdigamma(df / 2, p=p)
            + df * p / 2
        )

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-cresset.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + cresset.mvlgamma(half, p=p)
