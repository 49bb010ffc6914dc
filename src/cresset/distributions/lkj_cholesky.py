"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

import math

import cresset

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of dim × dim correlation matrices with a density proportional to det^(concentration - 1).

    `concentration` 1 is uniform over correlation matrices, larger ones prefer the identity
    (Lewandowski, Kurowicka and Joe 2009; drawn by their onion method).

    >>> cresset.distributions.LKJCholesky(3, 0.5).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row i without its diagonal is Beta(i / 2, concentration + (dim - 1 - i) / 2).
        offset = cresset.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = cresset.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), cresset.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        new._beta = self._beta.expand(cresset.Size(batch_shape) + (self.dim,))
        return self._expanded(LKJCholesky, batch_shape, new)

    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = cresset.randn(self._extended_shape(sample_shape), dtype=squared.dtype, device=squared.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has nothing left of the diagonal: 0 / 0
        below = squared.sqrt() * direction
        rest = (1 - (below**2).sum(-1)).clamp(min=cresset.finfo(below.dtype).tiny)
        return below + rest.sqrt().diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = cresset.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        normalizer = 0.5 * rows * math.log(math.pi) + cresset.mvlgamma(alpha - 0.5, rows) - alpha.lgamma() * rows
        return (order * diagonal.log()).sum(-1) - normalizer
