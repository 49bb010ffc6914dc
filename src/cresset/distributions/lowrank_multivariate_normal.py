"""The multivariate normal distribution whose covariance is a low-rank matrix plus a diagonal."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _plus_unit(matrix):
    return matrix + cresset.eye(matrix.size(-1), dtype=matrix.dtype, device=matrix.device)


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of I + Wᵀ D⁻¹ W, which is as small as the rank."""
    return cresset.linalg.cholesky(_plus_unit((W.mT / D.unsqueeze(-2)) @ W))


def _batch_lowrank_logdet(W, D, capacitance_tril):
    """log det (W Wᵀ + D), by the matrix determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """xᵀ (W Wᵀ + D)⁻¹ x, by the Woodbury identity."""
    inside = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inside)


class LowRankMultivariateNormal(Distribution):
    """A multivariate normal distribution with covariance cov_factor cov_factorᵀ + diag(cov_diag).

    Everything costs as much as the rank (the last dimension of `cov_factor`) asks for, not the size of the vectors.

    >>> D = cresset.distributions
    >>> D.LowRankMultivariateNormal(cresset.zeros(2), cresset.tensor([[1.0], [0.0]]), cresset.ones(2)).covariance_matrix
    tensor([[2., 0.],
            [0., 1.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("LowRankMultivariateNormal: loc must have at least one dimension, got a 0-d tensor")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"LowRankMultivariateNormal: cov_factor must end in the shape {event_shape[0]} x rank, got "
                f"{tuple(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(
                f"LowRankMultivariateNormal: cov_diag must end in the shape {tuple(event_shape)}, got "
                f"{tuple(cov_diag.shape)}"
            )
        try:
            loc_, self.cov_factor, diag_ = cresset.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"LowRankMultivariateNormal: the batch shapes of loc {tuple(loc.shape)}, cov_factor "
                f"{tuple(cov_factor.shape)} "
                f"and cov_diag {tuple(cov_diag.shape)} do not broadcast"
            ) from error
        self.loc, self.cov_diag = loc_[..., 0], diag_[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def _parts(self):
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        new._unbroadcasted_cov_factor, new._unbroadcasted_cov_diag = self._parts
        new._capacitance_tril = self._capacitance_tril
        return self._expanded(LowRankMultivariateNormal, batch_shape, new)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def variance(self):
        factor, diag = self._parts
        return (factor.pow(2).sum(-1) + diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance: that of D^½ (I + D^-½ W Wᵀ D^-½) D^½."""
        factor, diag = self._parts
        root = diag.sqrt().unsqueeze(-1)
        scaled = factor / root
        return self._whole(root * cresset.linalg.cholesky(_plus_unit(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        factor, diag = self._parts
        return self._whole(factor @ factor.mT + diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance, by the Woodbury identity."""
        factor, diag = self._parts
        inside = cresset.linalg.solve_triangular(self._capacitance_tril, factor.mT / diag.unsqueeze(-2), upper=False)
        return self._whole(diag.reciprocal().diag_embed() - inside.mT @ inside)

    def rsample(self, sample_shape=cresset.Size()):  # noqa: B008
        shape, kind = self._extended_shape(sample_shape), (self.loc.dtype, self.loc.device)
        factor, diag = self._parts
        of_factor = _standard_normal(shape[:-1] + factor.shape[-1:], *kind)
        of_diag = _standard_normal(shape, *kind)
        return self.loc + _batch_mv(factor, of_factor) + diag.sqrt() * of_diag

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        square = _batch_lowrank_mahalanobis(*self._parts, value - self.loc, self._capacitance_tril)
        log_det = _batch_lowrank_logdet(*self._parts, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + square)

    def entropy(self):
        log_det = _batch_lowrank_logdet(*self._parts, self._capacitance_tril)
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)).expand(self._batch_shape)
