"""Linear equations, inverses and least squares."""

import math
from typing import Any

import cresset

from .._native import name_node
from ..autograd.function import BatchFunction
from ..ops import return_types
from ..ops.autocast import autocast
from ..ops.batches import all_samples
from . import lapack
from .calling import is_differentiated, with_out
from .checking import (
    check_info,
    check_matrix,
    check_same_dtype,
    check_square,
    is_without_values,
    name_of,
    real_dtype,
)
from .eigen import check_svd
from .factorizations import check_pivots, unpack
from .triangular import SolveTriangular, broadcast_batches, solve_triangular


class Solve(BatchFunction):
    """A X = B."""

    _node_name = "LinalgSolveExBackward0"

    @staticmethod
    def forward(ctx, A, B):
        LU, pivots, info = lapack.getrf(A)
        X = lapack.getrs(LU, pivots, B)
        ctx.mark_non_differentiable(info)
        ctx.factors = LU, pivots
        ctx.save_for_backward(A, X)
        return X, info

    @staticmethod
    def backward(ctx, grad, _):
        """gB = A⁻ᴴ gX and gA = -gB Xᴴ."""
        A, X = ctx.saved_tensors
        if cresset.is_grad_enabled():
            gB = Solve.apply(A.mH, grad)[0]
        else:
            gB = lapack.getrs(*ctx.factors, grad, b"C")
        return -(gB @ X.mH) if ctx.needs_input_grad[0] else None, gB


class Inverse(BatchFunction):
    """X = A⁻¹."""

    _node_name = "LinalgInvExBackward0"

    @staticmethod
    def forward(ctx, A):
        LU, pivots, info = lapack.getrf(A)
        identity = cresset.eye(A.size(-1), dtype=A.dtype, device=A.device)
        X = lapack.getrs(LU, pivots, identity.expand(A.shape))
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(X)
        return X, info

    @staticmethod
    def backward(ctx, grad, _):
        """gA = -Xᴴ gX Xᴴ."""
        (X,) = ctx.saved_tensors
        return -(X.mH @ grad @ X.mH)


_SINGULAR = (
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
)


@autocast(cpu="float32")
@with_out
def inv_ex(A, *, check_errors=False) -> Any:
    """`inv` that reports a singular matrix in `info`: 0 is fine, k says that element k of U in A = P L U is zero.

    >>> cresset.linalg.inv_ex(cresset.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    check_square("linalg.inv_ex", A)
    X, info = Inverse.apply(A)
    if check_errors:
        check_info("linalg.inv_ex", info, _SINGULAR)
    return return_types.linalg_inv_ex((X, info))


@autocast(cpu="float32")
@with_out
def inv(A):
    """The inverse: the X with A X = I. To solve equations, `solve` is faster and more exact.

    >>> cresset.linalg.inv(cresset.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_square("linalg.inv", A)
    X, info = Inverse.apply(A)
    check_info("linalg.inv", info, _SINGULAR)
    return X


def _solve(who, A, B, left):
    """(X, info) of A X = B, or X A = B."""
    check_square(who, A)
    check_same_dtype(who, A, B)
    # B is a vector, or a batch of them, if it has the shape of A without its last dimension.
    of_vectors = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if of_vectors and not left:
        raise RuntimeError(
            f"{who}: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if of_vectors:
        B = B.unsqueeze(-1)
    check_matrix(who, B, "B")
    A, B = broadcast_batches(who, A, B, left)
    if left:
        X, info = Solve.apply(A, B)
    else:
        X, info = Solve.apply(A.mT, B.mT)
        X = X.mT
    return name_node(X.squeeze(-1) if of_vectors else X, "LinalgSolveExBackward0"), info


@autocast(cpu="float32")
@with_out
def solve_ex(A, B, *, left=True, check_errors=False) -> Any:
    """`solve` that reports a singular matrix in `info`: 0 is fine, k says that element k of U in A = P L U is zero.

    >>> cresset.linalg.solve_ex(cresset.eye(2), cresset.tensor([1.0, 2.0])).result
    tensor([1., 2.])
    """
    X, info = _solve("linalg.solve_ex", A, B, left)
    if check_errors:
        check_info("linalg.solve_ex", info, "The solver failed because the input matrix is singular.")
    return return_types.linalg_solve_ex((X, _of_each_matrix(info, A.shape[:-2])))


def _of_each_matrix(info, batch):
    """One number for each matrix, though the right-hand sides may have made more of them by broadcasting."""
    if info.shape == batch:
        return info
    if info.numel() == 0:
        return info.new_zeros(batch)
    info = info[(0,) * (info.ndim - len(batch))]
    for d, size in enumerate(batch):
        info = info.narrow(d, 0, size)
    return info


@autocast(cpu="float32")
@with_out
def solve(A, B, *, left=True):
    """The X with A X = B (X A = B unless `left`), for square A. B may be a vector.

    >>> cresset.linalg.solve(cresset.tensor([[2.0, 0.0], [0.0, 4.0]]), cresset.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """
    X, info = _solve("linalg.solve", A, B, left)
    check_info("linalg.solve", info, "The solver failed because the input matrix is singular.")
    return X


@with_out
def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """The X with A X = B, from `lu_factor(A)` (X A = B unless `left`; with Aᴴ for A if `adjoint`).

    >>> A = cresset.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cresset.linalg.lu_solve(*cresset.linalg.lu_factor(A), cresset.tensor([[2.0], [8.0]]))
    tensor([[1.],
            [2.]])
    """
    who = "linalg.lu_solve"
    check_square(who, LU, "LU")
    check_matrix(who, B, "B")
    check_same_dtype(who, LU, B, ("LU", "B"))
    check_pivots(who, LU, pivots)
    LU, B = broadcast_batches(who, LU, B, left)
    pivots = pivots.expand(LU.shape[:-1])
    if not left:
        # X A = B is Aᴴ Xᴴ = Bᴴ.
        return name_node(_lu_solve(LU, pivots, B.mH, not adjoint).mH, SolveUpper._node_name)
    return name_node(_lu_solve(LU, pivots, B, adjoint), SolveUpper._node_name)


class SolveUpper(SolveTriangular):
    """U X = Y: the last step to the X with L U X = B."""

    _node_name = "LinalgLuSolveBackward0"


def _lu_solve(LU, pivots, B, adjoint):
    if not is_differentiated(LU, B):
        return lapack.getrs(LU, pivots, B, b"C" if adjoint else b"N")
    P, L, U = unpack(LU, pivots, "LuUnpackBackward0")
    if adjoint:
        Y = solve_triangular(U.mH, B, upper=False)
        return P @ solve_triangular(L.mH, Y, upper=True, unitriangular=True)
    Y = solve_triangular(L, P.mT @ B, upper=False, unitriangular=True)
    return SolveUpper.apply(U, Y, True, True, False)


@with_out
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """The X with A X = B, from `ldl_factor(A)`.

    >>> A = cresset.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cresset.linalg.ldl_solve(*cresset.linalg.ldl_factor(A), cresset.tensor([[2.0], [8.0]]))
    tensor([[1.],
            [2.]])
    """
    who = "linalg.ldl_solve"
    check_square(who, LD, "LD")
    check_matrix(who, B, "B")
    check_same_dtype(who, LD, B, ("LD", "B"))
    check_pivots(who, LD, pivots)
    LD, B = broadcast_batches(who, LD, B)
    return _LDLSolve.apply(LD, pivots.expand(LD.shape[:-1]), B, hermitian)


class _LDLSolve(BatchFunction):
    """A X = B with A = L D Lᵀ or L D Lᴴ."""

    @staticmethod
    def forward(ctx, LD, pivots, B, hermitian):
        return lapack.sytrs(LD, pivots, B, hermitian)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("the derivative for 'linalg_ldl_solve' is not implemented.")


class PseudoInverse(BatchFunction):
    """P = A⁺, by singular values or, for Hermitian A, by eigenvalues."""

    _node_name = "LinalgPinvBackward0"

    @staticmethod
    def forward(ctx, A, atol, rtol, hermitian):
        if hermitian:
            values, vectors, info = lapack.syevd(A, False, True)
            check_info("linalg.pinv", info, "The algorithm failed to converge (error code: {}).")
            left, size = vectors, values.abs()
            right = vectors.mH
        else:
            left, values, right, info = lapack.gesdd(A, True)
            check_svd(info)
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


def gradient_through_pseudo_inverse(grad, A, P):
    """gA = -Pᴴ gP Pᴴ + (I - A P) gPᴴ P Pᴴ + Pᴴ P gPᴴ (I - P A)   (Golub and Pereyra)."""
    first = grad.mH @ P @ P.mH
    second = P.mH @ P @ grad.mH
    return -(P.mH @ grad @ P.mH) + (first - A @ (P @ first)) + (second - (second @ P) @ A)


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


class LeastSquares(BatchFunction):
    """The X that makes ‖A X - B‖ least."""

    _node_name = "LinalgLstsqBackward0"

    @staticmethod
    def forward(ctx, A, B, rcond, driver):
        X, rank, values, info = lapack.least_squares(A, B, rcond, driver)
        check_info(
            "linalg.lstsq",
            info,
            "The least squares solution could not be computed because the input matrix does not have full rank "
            "(error code: {})."
            if driver == "gels"
            else "The algorithm failed to converge (error code: {}).",
        )
        n, real = A.size(-1), real_dtype(A.dtype)
        X = X[..., :n, :].clone()
        # Residuals are given where the solution is unique and leaves some: never by gelsy, as in PyTorch.
        ctx.has_residuals = (
            driver != "gelsy"
            and A.size(-2) > n
            and (driver == "gels" or is_without_values(rank) or bool((all_samples(rank) == n).all()))
        )
        residuals = (A @ X - B).abs().square().sum(-2) if ctx.has_residuals else A.new_empty(0, dtype=real)
        rank = A.new_empty(0, dtype=cresset.int64) if rank is None else rank
        values = A.new_empty(0, dtype=real) if values is None else values
        ctx.save_for_backward(A, B, X)
        ctx.mark_non_differentiable(rank, values)
        return X, residuals, rank, values

    @staticmethod
    def backward(ctx, gX, g_residuals, *_):
        """X = A⁺ B: gB = A⁺ᴴ gX, and gA comes through A⁺ with gP = gX Bᴴ.

        Residuals ‖A X - B‖² depend on X only in second order, so they add D Xᴴ to gA and take D from gB, D = 2 (A X -
        B) g.
        """
        A, B, X = ctx.saved_tensors
        P = pinv(A)
        gA = gradient_through_pseudo_inverse(gX @ B.mH, A, P) if ctx.needs_input_grad[0] else None
        gB = P.mH @ gX
        if ctx.has_residuals:
            difference = 2 * (A @ X - B) * g_residuals.unsqueeze(-2)
            gA = None if gA is None else gA + difference @ X.mH
            gB = gB - difference
        return gA, gB, None, None


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
    own, batch = A.shape[:-2], cresset.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])
    m, n = A.shape[-2:]
    default = cresset.finfo(A.dtype).eps * max(m, n)
    X, residuals, rank, values = LeastSquares.apply(A, B, float(default if rcond is None else rcond), driver)
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
    return name_node(inv(A.reshape(n, n)).reshape(columns + rows), "ReshapeAliasBackward0")


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
    return solve(A.reshape(n, n), B.reshape(n)).reshape(shape)
