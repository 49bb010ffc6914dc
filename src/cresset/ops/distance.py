"""Norms, distances between vectors, and vectors brought within a norm."""

import cresset

from .dimensions import wrap_dim
from .registry import function


@function(method=True, out=True, autocast={"cuda": "float32"})
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The norm of all elements, or along `dim`. `linalg.vector_norm` and `linalg.matrix_norm` say which one is meant.

    Args:
        p: the exponent of a vector norm; "fro", the same as 2; or "nuc", the sum of a matrix' singular values.

    >>> cresset.norm(cresset.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if p == "nuc":
        dim = tuple(range(input.ndim)) if dim is None else dim
        return cresset.linalg.matrix_norm(input, "nuc", dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: Order {p} not supported; it is a number, 'fro' or 'nuc'")
    order = 2 if p is None or p == "fro" else p
    return cresset.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype)


@function
def norm_except_dim(v, pow=2, dim=0):
    """The norm of order `pow` over all dimensions but `dim`, which keeps its place; over all of them if `dim` is -1.

    >>> cresset.norm_except_dim(cresset.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return v.norm(pow)
    norms = v.transpose(0, dim).reshape(v.size(dim), -1).norm(pow, 1)
    shape = [1] * v.ndim
    shape[dim] = v.size(dim)
    return norms.view(shape)


@function(method=True, autocast={"cuda": "float32"})
def dist(input, other, p=2):
    """The p-norm of `input - other`.

    >>> cresset.dist(cresset.tensor([0.0, 0.0]), cresset.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return cresset.linalg_vector_norm(input - other, p)


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@function(autocast="float32")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance of each row of `x1` to each row of `x2`.

    Args:
        x1: shape (..., P, M).
        x2: shape (..., R, M); the leading dimensions broadcast, and the result is (..., P, R).
        compute_mode: whether Euclidean distances come from a matrix product ("use_mm_for_euclid_dist"), which is faster
            but loses digits for close points, or not ("donot_use_mm_for_euclid_dist"). By default: if either has more
            than 25 rows.

    >>> cresset.cdist(cresset.tensor([[0.0, 0.0]]), cresset.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"cdist: expected scalar type {x1.dtype} but found {x2.dtype}")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(
            f"cdist: X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}"
        )
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: {compute_mode} is not a valid value for compute_mode")
    by_product = compute_mode != _MODES[2] and (compute_mode == _MODES[1] or x1.size(-2) > 25 or x2.size(-2) > 25)
    if p == 2 and by_product:
        return _euclidean_by_product(x1, x2)
    return _length(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _length(difference, p):
    """The p-norms along the last dimension. With p = 0, a count, their gradient is zero; that of vector_norm is
    none."""
    length = cresset.linalg.vector_norm(difference, p, -1)
    return length + difference.sign().mul(0).sum(-1) if p == 0 and difference.requires_grad else length


def _euclidean_by_product(x1, x2):
    """|a - b|² = |a|² + |b|² - 2 a·b. The gradient is 0 where the distance is."""
    squares = (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1).unsqueeze(-2)
    squared = squares - 2 * (x1 @ x2.mT)
    if not squared.requires_grad:
        return squared.clamp_min(0).sqrt()
    together = squared <= 0
    return squared.masked_fill(together, 1).sqrt().masked_fill(together, 0)


@function(autocast={"cuda": "float32"})
def pdist(input, p=2):
    """The p-norm distances of all pairs of rows: row 0 to 1, 2, …, row 1 to 2, 3, … and so on.

    >>> cresset.pdist(cresset.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {input.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    first, second = cresset.triu_indices(input.size(0), input.size(0), 1, device=input.device)
    if input.size(1) == 0:  # points without coordinates
        return input.new_zeros(first.numel())
    return _length(input.index_select(0, first) - input.index_select(0, second), p)


@function(method=True, inplace=True, out=True, autocast={"cuda": "float32"})
def renorm(input, p, dim, maxnorm):
    """Shrink the slices along `dim` whose p-norm exceeds `maxnorm` to that norm.

    >>> cresset.renorm(cresset.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 2.5)
    tensor([[1.5000, 2.0000],
            [0.0000, 1.0000]])
    """
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = wrap_dim(dim, input.ndim, "renorm")
    others = [other for other in range(input.ndim) if other != dim]
    norm = cresset.linalg.vector_norm(input, p, others, keepdim=True)
    # The small number keeps the quotient finite and the shrunken norm just below the bound.
    return input * (maxnorm / (norm + 1e-7)).masked_fill((norm > maxnorm).logical_not(), 1).to(input.dtype)
