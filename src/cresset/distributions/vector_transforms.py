"""Transforms of vectors and matrices: onto the simplex and triangular matrices, or with one transform for each part."""

import math

import cresset

from ..nn.functional import logsigmoid, pad, softplus
from . import constraints
from .transform import Transform
from .utils import _sum_rightmost, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix


def _inside_unit_interval(y):
    """Kept between the smallest positive number and the largest below one."""
    info = cresset.finfo(y.dtype)
    return y.clamp(min=info.tiny, max=1.0 - info.eps)


class CorrCholeskyTransform(Transform):
    """A vector of D (D - 1) / 2 numbers becomes the Cholesky factor of a D × D correlation matrix.

    tanh of the numbers are partial correlations r; row by row they break a stick of squared length one:
    y[i, j] = r[i, j] times the product of sqrt(1 - r[i, k]²) for k < j, and the diagonal takes what is left.

    >>> cresset.distributions.CorrCholeskyTransform()(cresset.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = cresset.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        unit = cresset.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + unit) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = 2 * (math.log(2.0) - x - softplus(-2 * x))
        return 0.5 * left.log().sum(-1) + of_tanh.sum(-1)

    def forward_shape(self, shape):
        self._expect_dims(shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError(f"CorrCholeskyTransform: {count} elements do not fill the triangle of a square matrix")
        return shape[:-1] + (size, size)

    def inverse_shape(self, shape):
        self._expect_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: expected square matrices, got shape {tuple(shape)}")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(Transform):
    """Softmax over the last dimension; its inverse is the logarithm, up to a constant.

    >>> cresset.distributions.SoftmaxTransform()(cresset.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other):
        return isinstance(other, SoftmaxTransform)

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        self._expect_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """K - 1 numbers become K probabilities: each takes its share of the stick that the ones before left.

    >>> cresset.distributions.StickBreakingTransform()(cresset.zeros(1))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    def _shifted(self, x):
        """Shifted so that zeros give equal probabilities."""
        return x - (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x):
        share = _inside_unit_interval(cresset.sigmoid(self._shifted(x)))
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=cresset.finfo(y.dtype).tiny)
        offset = y.shape[-1] - y.new_ones(taken.shape[-1]).cumsum(-1)
        return taken.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x, y):
        x = self._shifted(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        self._expect_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        self._expect_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix with exp of its diagonal.

    >>> cresset.distributions.LowerCholeskyTransform()(cresset.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """A matrix becomes L Lᵀ with L from LowerCholeskyTransform.

    >>> cresset.distributions.PositiveDefiniteTransform()(cresset.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other):
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(cresset.linalg.cholesky(y))


# ---------------------------------------------------------------- one transform for each part of a value


class _PartsTransform(Transform):
    """Transforms of the pieces along `dim`; a subclass says how a value is split and joined."""

    def __init__(self, tseq, dim, cache_size):
        for each in tseq:
            if not isinstance(each, Transform):
                raise AssertionError(f"{self.__class__.__name__}: expected Transforms, got a {type(each).__name__}")
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _expect_size(self, value, size):
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != size:
            raise AssertionError(
                f"{self.__class__.__name__}: expected size {size} in dimension {self.dim}, got shape "
                f"{tuple(value.shape)}"
            )

    def _call(self, x):
        return self._join([part(piece) for part, piece in zip(self.transforms, self._pieces(x))])

    def _inverse(self, y):
        return self._join([part.inv(piece) for part, piece in zip(self.transforms, self._pieces(y))])

    @property
    def bijective(self):
        return all(part.bijective for part in self.transforms)


class CatTransform(_PartsTransform):
    """Transforms of consecutive pieces of the given lengths (1 each) along `dim`.

    >>> D = cresset.distributions
    >>> D.CatTransform([D.ExpTransform(), D.AbsTransform()])(cresset.tensor([0.0, -3.0]))
    tensor([1., 3.])
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform: {len(self.transforms)} transforms need as many lengths, got {len(self.lengths)}"
            )

    def _with_cache(self, cache_size):
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @lazy_property
    def event_dim(self):
        return max(part.event_dim for part in self.transforms)

    @lazy_property
    def length(self):
        """The size along `dim`."""
        return sum(self.lengths)

    def _pieces(self, value):
        self._expect_size(value, self.length)
        return value.split(self.lengths, self.dim)

    def _join(self, pieces):
        return cresset.cat(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [
            _sum_rightmost(part.log_abs_det_jacobian(before, after), self.event_dim - part.event_dim)
            for part, before, after in zip(self.transforms, self._pieces(x), self._pieces(y))
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return cresset.cat(terms, dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Transforms of the slices along `dim`, one each.

    >>> D = cresset.distributions
    >>> D.StackTransform([D.ExpTransform(), D.AbsTransform()])(cresset.tensor([0.0, -3.0]))
    tensor([1., 3.])
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def _with_cache(self, cache_size):
        return StackTransform(self.transforms, self.dim, cache_size)

    def _pieces(self, value):
        self._expect_size(value, len(self.transforms))
        return value.unbind(self.dim)

    def _join(self, pieces):
        return cresset.stack(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join(
            [
                part.log_abs_det_jacobian(before, after)
                for part, before, after in zip(self.transforms, self._pieces(x), self._pieces(y))
            ]
        )

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([part.codomain for part in self.transforms], self.dim)
