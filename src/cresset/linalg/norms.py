"""Norms of vectors and matrices, and the condition number."""

import math

import cresset

from .._native import name_node
from ..ops.autocast import autocast
from ..ops.batches import all_samples
from ..ops.dimensions import wrap_dim
from .calling import with_out
from .checking import check_floating, check_matrix, check_square_shape, is_without_values


@autocast(cuda="accumulate")
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of order `ord` of all elements, or along `dim`: sum(abs(x)**ord)**(1 / ord).

    Orders inf and -inf are the largest and the smallest absolute value; order 0 counts what is not zero.

    >>> cresset.linalg.vector_norm(cresset.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not str {ord!r}")
    if out is None:
        return cresset.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype)
    return cresset.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype, out=out)


def _two_dims(who, A, dim):
    dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dim) != 2:
        raise RuntimeError(f"{who}: dim must be a 2-tuple. Got {dim}")
    first, second = (wrap_dim(d, A.ndim, who) for d in dim)
    if first == second:
        raise RuntimeError(f"{who}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


@autocast(cuda="accumulate")
@with_out
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices, which lie in the dimensions `dim`.

    Args:
        ord: "fro" (root of the sum of squares), "nuc" (sum of the singular values), 2 and -2 (the largest and the
            smallest singular value), inf and -inf (of the rows' absolute sums), 1 and -1 (of the columns').

    >>> cresset.linalg.matrix_norm(cresset.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    who = "linalg.matrix_norm"
    if A.ndim < 2:
        raise RuntimeError(f"{who}: The input tensor A must have at least 2 dimensions, got shape {tuple(A.shape)}.")
    first, second = _two_dims(who, A, dim)
    is_name = isinstance(ord, str)
    if is_name and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{who}: Order {ord} not supported.")
    if not is_name and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{who}: Order {ord} not supported.")
    singular = ord == "nuc" or (not is_name and abs(ord) == 2)
    check_floating(who, A if dtype is None else A.new_empty(0, dtype=dtype), low_precision=not singular)
    if ord == "fro":
        return cresset.linalg_vector_norm(A, 2, [first, second], keepdim, dtype=dtype)
    if singular:
        if dtype is not None:
            A = A.to(dtype)
        values = cresset.linalg.svdvals(A.movedim((first, second), (-2, -1)))
        result = values.sum(-1) if is_name else _extreme(values, ord, -1, False)
        # The dimensions that went to the end come back to their places with size 1.
        if not keepdim:
            return result
        return name_node(result.unsqueeze(min(first, second)).unsqueeze(max(first, second)), "PermuteBackward0")
    summed, looked_at = (first, second) if abs(ord) == 1 else (second, first)
    sums = cresset.linalg_vector_norm(A, 1, summed, keepdim, dtype=dtype)
    if not keepdim and looked_at > summed:
        looked_at -= 1
    return _extreme(sums, ord, looked_at, keepdim)


def _extreme(values, ord, dim, keepdim):
    if ord > 0 and values.size(dim) == 0:
        return values.sum(dim, keepdim)  # the largest of no norms is 0
    return values.amax(dim, keepdim) if ord > 0 else values.amin(dim, keepdim)


@with_out
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of a vector or a matrix: `vector_norm` if `dim` is one dimension, `matrix_norm` if it is two.

    Without `ord` it is the root of the sum of squares, over all dimensions if there is no `dim` either.

    >>> cresset.linalg.norm(cresset.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
    tensor(4.)
    """
    who = "linalg.norm"
    dims = None if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if ord is None:
        return cresset.linalg_vector_norm(A, 2, None if dims is None else list(dims), keepdim, dtype=dtype)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"{who}: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and A.ndim not in (1, 2):
        raise RuntimeError(f"{who}: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D")
    of_matrix = isinstance(ord, str) or len(dims or A.shape) == 2
    if of_matrix:
        return matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype)
    return cresset.linalg_vector_norm(A, ord, None if dims is None else list(dims), keepdim, dtype=dtype)


@autocast(cpu="float32")
@with_out(casts=True)
def cond(A, p=None):
    """How much a matrix can magnify a relative error: norm(A, p) * norm(inv(A), p), infinite for a singular matrix.

    >>> cresset.linalg.cond(cresset.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor(4.)
    """
    who = "linalg.cond"
    check_matrix(who, A)
    if p is not None and not (p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, 2, math.inf)):
        raise RuntimeError(f"{who} got an invalid norm type: {p}")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = cresset.linalg.svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return name_node(smallest / largest if p == -2 else largest / smallest, "SqueezeBackward1")
    check_square_shape(who, A)
    if not A.numel():
        return cresset.zeros(A.shape[:-2], dtype=A.dtype.to_real(), device=A.device)
    inverse, info = cresset.linalg.inv_ex(A)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    failed = not is_without_values(info) and bool(all_samples(info).any())
    result = result.masked_fill(info != 0, math.inf) if failed else result
    return result if p == "nuc" else name_node(result, "NanToNumBackward0")
