"""Products: of vectors, of matrices and of chains and powers of them."""

import cresset

from .._native import name_node
from ..ops.autocast import autocast
from ..ops.dimensions import is_integer
from ..ops.matmul_contraction import multi_dot as _chain
from .calling import identity_in_place_of, with_out, with_tensors
from .checking import check_square_shape


@with_out
def cross(input, other, *, dim=-1):
    """The cross product of vectors of three elements, along `dim`; the other dimensions broadcast.

    >>> cresset.linalg.cross(cresset.tensor([1, 0, 0]), cresset.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return cresset.linalg_cross(input, other, dim=dim)


@autocast("lower")
@with_out
def vecdot(x, y, *, dim=-1):
    """The dot products of the vectors along `dim`, the first ones conjugated; the other dimensions broadcast.

    >>> cresset.linalg.vecdot(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, got {x.dtype} and {y.dtype}")
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}")
    if x.ndim == y.ndim == 1 and x.numel() != y.numel():
        raise RuntimeError(
            "linalg.vecdot: inconsistent tensor size, expected two vectors to have the same number of elements, but "
            f"got {x.numel()} and {y.numel()}"
        )
    left = x.conj() if x.is_complex() else x
    if x.ndim == y.ndim == 1:  # there is only one dimension, whatever was asked for
        return name_node((left * y).sum(0, dtype=x.dtype), "VdotBackward0")
    return (left * y).sum(dim, dtype=x.dtype)


@with_tensors
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, as a view. Like `torch.diagonal`, but the matrices are the last two dimensions.

    >>> cresset.linalg.diagonal(cresset.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


def matmul(input, other, *, out=None):
    """The matrix product, with broadcast batches: another name of `torch.matmul`.

    >>> cresset.linalg.matmul(cresset.tensor([[1, 2]]), cresset.tensor([[3], [4]]))
    tensor([[11]])
    """
    return cresset.matmul(input, other) if out is None else cresset.matmul(input, other, out=out)


@autocast("lower")
@with_out
def multi_dot(tensors):
    """The matrix product of a chain, in the order that needs the fewest multiplications.

    >>> cresset.linalg.multi_dot([cresset.ones(1, 2), cresset.ones(2, 3), cresset.ones(3, 1)])
    tensor([[6.]])
    """
    return name_node(_chain(tensors, "multi_dot"), "ViewBackward0")


@with_out
def matrix_power(A, n):
    """A multiplied n times with itself; the inverse as often, if n is negative.

    >>> cresset.linalg.matrix_power(cresset.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    check_square_shape("linalg.matrix_power", A)
    if not is_integer(n):
        raise TypeError(f"linalg_matrix_power(): argument 'n' must be int, not {n.__class__.__name__}")
    n = int(n)
    if n == 0:
        return name_node(identity_in_place_of(A), "torch::autograd::CopyBackwards")
    if n == 1:
        return A.clone()
    if n < 0:
        A, n = cresset.linalg.inv(A), -n
    # Square A for each binary digit of n, and multiply where the digit is 1.
    result = None
    while n:
        n, digit = divmod(n, 2)
        if digit:
            result = A if result is None else result @ A
        if n:
            A = A @ A
    return result


@with_tensors
def vander(x, N=None):
    """Vandermonde's matrix: the powers 0, 1, …, N - 1 of each element, in rows.

    >>> cresset.linalg.vander(cresset.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    who = "linalg.vander"
    if x.dtype == cresset.bool:
        raise RuntimeError(f"{who}: bool tensors are not supported")
    x = cresset.atleast_1d(x)
    count = x.size(-1) if N is None else N
    if count <= 1:
        raise RuntimeError(f"{who}: N must be greater than 1, got {count}")
    steps = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    one = cresset.ones(*x.shape, 1, dtype=steps.dtype, device=x.device)
    return cresset.cat([one, steps], -1)
