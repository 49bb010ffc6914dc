"""Norms, distances between vectors, and vectors brought within a norm."""

import cresset

from .._native import name_node
from .dimensions import wrap_dim
from .registry import function, operator


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
    if p == "fro" and dtype is not None and input.layout != cresset.strided:
        raise ValueError(f"norm: dtype argument is not supported in frobenius norm of a {input.layout} tensor")
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
    return name_node(cresset.linalg_vector_norm(input - other, p), "DistBackward0")


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
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: {compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if min(x1.ndim, x2.ndim) >= 2 and x1.shape[:-2] != x2.shape[:-2]:
        leading = cresset.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        x1, x2 = (x.expand(*leading, *x.shape[-2:]) for x in (x1, x2))
    if p != 2 or compute_mode == _MODES[2] or x1.ndim < 2 or x1.shape[-1:] != x2.shape[-1:]:
        return cresset._cdist(x1, x2, p)
    if compute_mode == _MODES[1] or x1.size(-2) > 25 or x2.size(-2) > 25:
        return _euclidean_by_product(x1, x2)
    return cresset._cdist(x1, x2, p)


_cdist = operator(
    "_cdist",
    """The p-norm distance of each row of `x1` to each row of `x2`, whose leading dimensions are equal: see `cdist`.

    >>> cresset._cdist(cresset.tensor([[0.0, 0.0]]), cresset.tensor([[3.0, 4.0], [0.0, 1.0]]), 1.0)
    tensor([[7., 1.]])
    """,
)


@_cdist.derivative
def _(grad, x1, x2, p, output):
    yield lambda: cresset._cdist_backward(grad, x1, x2, p, output)
    yield lambda: cresset._cdist_backward(grad.mT, x2, x1, p, output.mT)


@_cdist.batch
def _(call):
    return call.run(call.full(0), call.full(1), call.args[2])


@_cdist.onnx
def _(g, x1, x2, p):
    rank = len(x1.shape)
    difference = g.op("Sub", g.unsqueeze(x1, [rank - 1]), g.unsqueeze(x2, [rank - 2]))
    if p in (1, 2):
        return g.reduce("ReduceL1" if p == 1 else "ReduceL2", difference, [rank], keepdims=False)
    size = g.op("Abs", difference)
    if p == float("inf"):
        return g.reduce("ReduceMax", size, [rank], keepdims=False)
    if p == 0:
        return g.reduce("ReduceSum", g.op("Sign", size), [rank], keepdims=False)
    total = g.reduce("ReduceSum", g.op("Pow", size, g.number(p, x1.dtype)), [rank], keepdims=False)
    return g.op("Pow", total, g.number(1 / p, x1.dtype))


_cdist_backward = operator(
    "_cdist_backward",
    """The gradient of `x1` in its distances to the rows of `x2`: over these, `grad_output` times the slope of the
    distance.""",
)


@_cdist_backward.derivative
def _(grad, grad_output, x1, x2, p, cdist):
    """With D = x1 - x2 of a pair and its distance d, the slope is S = sign(D) |D|^(p - 1) / d^(p - 1), zero where d is.

    Its own are (p - 1) |D|^(p - 2) / d^(p - 1) along D and (1 - p) S / d along d; none for p = 0, 1 and infinity."""
    together = cdist == 0
    along, distance = grad.unsqueeze(-2), cdist.masked_fill(together, 1)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    is_power = p not in (0, 1, float("inf"))

    def slope():
        if is_power:
            found = difference.sign() * difference.abs() ** (p - 1) / distance.unsqueeze(-1) ** (p - 1)
            return found.masked_fill(together.unsqueeze(-1) | (difference == 0), 0)
        found = difference.sign()
        if p == 1:
            return found
        return found * (difference.abs() == cdist.unsqueeze(-1)) if p else found * 0

    def bend():
        if not is_power:
            return difference * 0
        found = (p - 1) * difference.abs() ** (p - 2) / distance.unsqueeze(-1) ** (p - 1)
        if p < 2:  # infinite there
            found = found.masked_fill(difference == 0, 0)
        return along * (grad_output.masked_fill(together, 0).unsqueeze(-1) * found)

    yield lambda: (along * slope()).sum(-1)
    yield lambda: bend().sum(-2)
    yield lambda: -bend().sum(-3)
    yield lambda: (along * slope()).sum(-1) * grad_output * ((1 - p) / distance) if is_power else cdist * 0


@_cdist_backward.batch
def _(call):
    return call.run(call.full(0), call.full(1), call.full(2), call.args[3], call.full(4))


def _length(difference, p):
    """The p-norms along the last dimension. With p = 0 it is a count, whose gradient is zero, and no number where one
    of the differences is none.
    """
    return difference.abs().clamp_max(1).ceil().sum(-1) if p == 0 else cresset.linalg.vector_norm(difference, p, -1)


def _euclidean_by_product(x1, x2):
    """|a - b|² = |a|² + |b|² - 2 a·b. The gradient is 0 where the distance is."""
    squares = (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1).unsqueeze(-2)
    if squares.ndim <= 3:
        squared = (cresset.addmm if squares.ndim == 2 else cresset.baddbmm)(squares, x1, x2.mT, alpha=-2)
    else:
        squared = squares - 2 * (x1 @ x2.mT)
    if not squared.requires_grad:
        return squared.clamp_min_(0).sqrt_()
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
    places = cresset.add(second, first, alpha=input.size(0))
    distances = cresset._cdist(input, input, float(p)).reshape(-1).index_select(0, places)
    return name_node(distances, "PdistBackward0")


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
    factor = (maxnorm / (norm + 1e-7)).masked_fill((norm > maxnorm).logical_not(), 1)
    return name_node(input.contiguous() * factor.to(input.dtype), "RenormBackward0")
