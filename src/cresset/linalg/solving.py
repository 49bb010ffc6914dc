"""Pseudo-inverses, least squares and equations of tensors, made of the operators on matrices."""

import math
from typing import Any

import cresset

from .._native import name_node
from ..autograd.function import BatchFunction
from ..ops import return_types
from ..ops.autocast import autocast
from ..ops.linalg_equations import gradient_through_pseudo_inverse
from .calling import with_out
from .checking import check_matrix, check_same_dtype, check_square, name_of, real_dtype


class PseudoInverse(BatchFunction):
    """P = A⁺, by singular values or, for Hermitian A, by eigenvalues."""

    _node_name = "LinalgPinvBackward0"

    @staticmethod
    def forward(ctx, A, atol, rtol, hermitian):
        if hermitian:
            values, vectors = cresset.linalg_eigh(A)
            left, size = vectors, values.abs()
            right = vectors.mH
        else:
            left, values, right = cresset.linalg_svd(A, full_matrices=False)
            size = values
        kept = size > _bound(size, atol, rtol)
        inverse = cresset.where(kept, 1 / values, values.new_zeros(())).to(A.dtype)
        P = (right.mH * inverse.unsqueeze(-2)) @ left.mH
        ctx.save_for_backward(A, P)
        return P

    @staticmethod
    def backward(ctx, grad):
        A, P = ctx.saved_tensors
        return gradient_through_pseudo_inverse(grad, A, P), None, None, None


def _tolerances(who, A, atol, rtol):
    """atol and rtol as tensors that broadcast with a batch, where None was given PyTorch's defaults."""
    real = real_dtype(A.dtype)

    def as_tensor(value, name):
        if not isinstance(value, cresset.Tensor):
            return cresset.tensor(float(value), dtype=real, device=A.device)
        if value.is_complex():
            raise RuntimeError(f"{who}: {name} tensor of complex type is not supported, got {name_of(value.dtype)}")
        return value.detach()

    default = max(A.shape[-2:]) * cresset.finfo(A.dtype).eps
    if atol is None:
        atol, rtol = 0.0, default if rtol is None else rtol
        return as_tensor(atol, "atol"), as_tensor(rtol, "rtol")
    atol = as_tensor(atol, "atol")
    if rtol is None:
        # The relative bound rests where an absolute one was given.
        return atol, cresset.where(atol > 0, as_tensor(0.0, "rtol"), as_tensor(default, "rtol"))
    return atol, as_tensor(rtol, "rtol")


def _bound(values, atol, rtol):
    """The size up to which singular values count as zero."""
    largest = values.amax(-1) if values.size(-1) else values.new_zeros(values.shape[:-1])
    return cresset.maximum(atol.to(values.dtype), rtol.to(values.dtype) * largest).unsqueeze(-1)


@with_out(casts=True)
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The pseudo-inverse of Moore and Penrose: the inverse on what A reaches, zero elsewhere.

    Singular values up to max(atol, rtol * the largest) count as zero; `rtol` is by default the larger size times the
    dtype's epsilon, or zero where `atol` is given. `rcond` is an older name of `rtol`.

    >>> cresset.linalg.pinv(cresset.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    who = "linalg.pinv"
    (check_square if hermitian else check_matrix)(who, A)
    if not A.numel():
        if not A.requires_grad:
            return A.new_empty((*A.shape[:-2], A.size(-1), A.size(-2)))
        return name_node(A.mT.clone(), "LinalgPinvBackward0")
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return PseudoInverse.apply(A, *_tolerances(who, A, atol, rtol), hermitian)


@autocast(cpu="float32")
@with_out(casts=True)
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """How many singular values are more than max(atol, rtol * the largest). `tol` is an older name of `atol`.

    >>> cresset.linalg.matrix_rank(cresset.tensor([[1.0, 1.0], [1.0, 1.0]]))
    tensor(1)
    """
    who = "linalg.matrix_rank"
    (check_square if hermitian else check_matrix)(who, A)
    if tol is not None:
        atol, rtol = tol, 0.0
    if not A.numel():
        return cresset.zeros(A.shape[:-2], dtype=cresset.int64, device=A.device)
    atol, rtol = _tolerances(who, A, atol, rtol)
    with cresset.no_grad():
        values = cresset.linalg.eigvalsh(A).abs() if hermitian else cresset.linalg.svdvals(A)
        return (values > _bound(values, atol, rtol)).sum(-1)


def _before_broadcast(found, own, batch):
    """What was found for each matrix of a batch that was broadcast from the sizes `own`: once for each of those."""
    if not found.numel():
        return found
    found = found[(0,) * (len(batch) - len(own))]
    for dim, size in enumerate(own):
        found = found.narrow(dim, 0, 1) if size == 1 else found
    return found


@autocast(cpu="float32")
@with_out
def lstsq(A, B, rcond=None, *, driver=None) -> Any:
    """The X that makes ‖A X - B‖ least, with the squared residuals, the rank and the singular values where they are
    known.

    Args:
        rcond: singular values up to rcond times the largest count as zero; the dtype's epsilon times the larger size of
            A if None.
        driver: LAPACK's routine: "gels" (A has full rank), "gelsy" (the default), "gelsd", "gelss". On CUDA only
            "gels".

    >>> A = cresset.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> cresset.linalg.lstsq(A, cresset.tensor([[1.0], [4.0], [0.0]])).solution
    tensor([[1.],
            [2.]])
    """
    who = "torch.linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{who}: input must have at least 2 dimensions, got shape {tuple(A.shape)}")
    check_matrix(who, A)
    if not B.ndim:
        raise RuntimeError(f"{who}: other must have at least 1 dimension.")
    check_same_dtype(who, A, B, ("input", "other"))
    drivers = ("gels",) if A.is_cuda else ("gels", "gelsy", "gelsd", "gelss")
    driver = driver or ("gels" if A.is_cuda else "gelsy")
    if driver not in drivers:
        raise RuntimeError(
            f"{who}: parameter `driver` should be one of ({', '.join(drivers)}) on {A.device}, got {driver}"
        )
    of_vectors = B.ndim == 1 or B.shape == A.shape[:-1]
    if B.size(-1 if of_vectors else -2) != A.size(-2):
        raise RuntimeError(
            f"{who}: input.size(-2) should match other.size({-1 if of_vectors else -2}), got shapes {tuple(A.shape)} "
            f"and {tuple(B.shape)}"
        )
    if of_vectors:
        B = B.unsqueeze(-1)
    own = batch = A.shape[:-2]
    if own != B.shape[:-2]:
        batch = cresset.broadcast_shapes(own, B.shape[:-2])
        A, B = A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])
    m, n = A.shape[-2:]
    default = cresset.finfo(A.dtype).eps * max(m, n)
    X, residuals, rank, values = cresset._linalg_lstsq(A, B, float(default if rcond is None else rcond), driver)
    if own != batch:
        rank, values = _before_broadcast(rank, own, batch), _before_broadcast(values, own, batch)
    return return_types.linalg_lstsq((X.squeeze(-1) if of_vectors else X, residuals, rank, values))


@autocast(cpu="float32")
@with_out(casts=True)
def tensorinv(A, ind=2):
    """The inverse with respect to `tensordot`: A as a matrix whose rows are its first `ind` dimensions, inverted.

    >>> cresset.linalg.tensorinv(cresset.eye(4).reshape(4, 2, 2), ind=1).shape
    torch.Size([2, 2, 4])
    """
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: Expected a strictly positive integer for 'ind', got {ind}")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    n = math.prod(rows)
    if n != math.prod(columns):
        raise RuntimeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(columns)} != {n}"
        )
    return name_node(cresset.linalg_inv(A.reshape(n, n)).reshape(columns + rows), "ReshapeAliasBackward0")


@autocast(cpu="float32")
@with_out(casts=True)
def tensorsolve(A, B, dims=None):
    """The X with tensordot(A, X, X.ndim) = B; the dimensions `dims` of A are moved to its end first.

    >>> cresset.linalg.tensorsolve(cresset.eye(4).reshape(2, 2, 4), cresset.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    if dims is not None:
        dims = [d % A.ndim for d in dims]
        A = A.movedim(dims, list(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if math.prod(shape) ** 2 != A.numel():  # the two products differ
        raise RuntimeError(
            "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {math.prod(A.shape[: B.ndim])}"
        )
    n = math.prod(shape)
    return cresset.linalg_solve(A.reshape(n, n), B.reshape(n)).reshape(shape)
