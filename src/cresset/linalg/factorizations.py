"""Matrices as products of simpler ones: Cholesky's, LU, LDL and QR, with their derivatives.

In the derivatives, gX is the gradient of X, Xᴴ the conjugate transpose, and tril and triu keep one triangle.
"""

from typing import Any

import cresset

from .. import _native
from .._native import name_node
from ..autograd.function import BatchFunction
from ..ops import return_types
from ..ops.autocast import autocast
from ..ops.batches import all_samples
from . import lapack
from .calling import identity_in_place_of, is_differentiated, with_out
from .checking import check_info, check_matrix, check_square, is_without_values
from .columns import column_major
from .triangular import solve_triangular


class Cholesky(BatchFunction):
    """A = L Lᴴ."""

    _node_name = "LinalgCholeskyExBackward0"

    @staticmethod
    def forward(ctx, A, upper):
        factor, info = lapack.potrf(A, upper)
        ctx.upper = upper
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(factor)
        return factor, info

    @staticmethod
    def backward(ctx, grad, _):
        """gA = L⁻ᴴ sym(tril(Lᴴ gL)) L⁻¹ / 2, where sym mirrors the triangle."""
        (L,) = ctx.saved_tensors
        if ctx.upper:
            L, grad = L.mH, grad.mH
        product = L.mH @ grad
        mirrored = product.tril() + product.tril(-1).mH
        half = solve_triangular(L.mH, mirrored, upper=True)
        return solve_triangular(L, half, upper=False, left=False) / 2, None


class OlderCholesky(Cholesky):
    """That of `torch.cholesky`."""

    _node_name = "CholeskyBackward0"


@autocast(cpu="float32")
@with_out
def cholesky_ex(A, *, upper=False, check_errors=False) -> Any:
    """`cholesky` that reports failure in `info` (0: fine; k: the leading minor of order k is not positive-definite).

    >>> cresset.linalg.cholesky_ex(cresset.tensor([[4.0, 2.0], [2.0, 2.0]])).L
    tensor([[2., 0.],
            [1., 1.]])
    """
    check_square("linalg.cholesky", A)
    L, info = Cholesky.apply(A, upper)
    if check_errors:
        _check_positive_definite("linalg.cholesky_ex", info)
    return return_types.linalg_cholesky_ex((L, info))


@autocast(cpu="float32")
@with_out
def cholesky(A, *, upper=False):
    """The lower triangular L with A = L Lᴴ, for a Hermitian positive-definite A (`upper`: Lᴴ). One triangle of A is
    read.

    >>> cresset.linalg.cholesky(cresset.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return positive_factor(A, upper)


def positive_factor(A, upper, function=Cholesky):
    """What `cholesky` gives, recorded as `function` is."""
    check_square("linalg.cholesky", A)
    L, info = function.apply(A, upper)
    _check_positive_definite("linalg.cholesky", info)
    return L


def _check_positive_definite(who, info):
    check_info(
        who,
        info,
        "The factorization could not be completed because the input is not positive-definite "
        "(the leading minor of order {} is not positive-definite).",
    )


class LUFactor(BatchFunction):
    """A = P L U, with L and U in one matrix."""

    _node_name = "LinalgLuFactorExBackward0"

    @staticmethod
    def forward(ctx, A, pivot=True):
        LU, pivots, info = lapack.getrf(A, pivot)
        ctx.mark_non_differentiable(pivots, info)
        ctx.save_for_backward(LU, pivots)
        return LU, pivots, info

    @staticmethod
    def backward(ctx, grad, *_):
        """Square A: gA = P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ.

        If A is wide, the part right of the square, U₂ = L⁻¹ Pᵀ A₂, gives gA₂ = P L⁻ᴴ gU₂ and takes gU₂ U₂ᴴ from Lᴴ gL.
        If it is tall, the part below, L₂ = A₂ U⁻¹, gives gA₂ = gL₂ U⁻ᴴ and takes L₂ᴴ gL₂ from gU Uᴴ.
        """
        LU, pivots = ctx.saved_tensors
        m, n = LU.shape[-2:]
        k = min(m, n)
        square, grad_square = LU[..., :k, :k], grad[..., :k, :k]
        L = square.tril(-1) + cresset.eye(k, dtype=LU.dtype, device=LU.device)
        U = square.triu()
        from_L, from_U = L.mH @ grad_square.tril(-1), grad_square.triu() @ U.mH
        if n > m:
            from_L = from_L - grad[..., :, k:] @ LU[..., :, k:].mH
        elif m > n:
            from_U = from_U - LU[..., k:, :].mH @ grad[..., k:, :]
        inner = from_L.tril(-1) + from_U.triu()
        inner = solve_triangular(U.mH, inner, upper=False, left=False)
        if n > m:
            inner = cresset.cat([inner, grad[..., :, k:]], -1)
        result = solve_triangular(L.mH, inner, upper=True, unitriangular=True)
        if m > n:
            below = solve_triangular(U.mH, grad[..., k:, :], upper=False, left=False)
            result = cresset.cat([result, below], -2)
        return permutation(pivots, m, LU.dtype) @ result, None


def permutation(pivots, m, dtype):
    """The matrix P of the row exchanges `pivots`: exchange i is of rows i and pivots[i], from 1."""
    order = lapack.row_order(pivots, m)
    return (order.unsqueeze(-2) == cresset.arange(m, device=order.device).unsqueeze(-1)).to(dtype)


def _check_pivot(who, A, pivot):
    if not isinstance(pivot, bool):
        raise TypeError(f"{who}(): argument 'pivot' must be bool, not {type(pivot).__name__}")
    if not pivot and not A.is_cuda:
        raise RuntimeError(f"{who}: LU without pivoting is not implemented on the CPU")


@with_out
def lu_factor_ex(A, *, pivot=True, check_errors=False) -> Any:
    """`lu_factor` that reports a zero on the diagonal of U in `info` (0: none; k: element k, counted from 1).

    >>> cresset.linalg.lu_factor_ex(cresset.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    check_matrix("linalg.lu_factor", A)
    _check_pivot("linalg.lu_factor", A, pivot)
    LU, pivots, info = LUFactor.apply(A, pivot)
    if check_errors:
        _check_no_zero("linalg.lu_factor_ex", info)
    return return_types.linalg_lu_factor_ex((LU, pivots, info))


@with_out
def lu_factor(A, *, pivot=True) -> Any:
    """A = P L U in LAPACK's form: L and U in one matrix, and the row exchanges (rows counted from 1). See `lu_solve`.

    >>> LU, pivots = cresset.linalg.lu_factor(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> pivots
    tensor([2, 2], dtype=torch.int32)
    """
    check_matrix("linalg.lu_factor", A)
    _check_pivot("linalg.lu_factor", A, pivot)
    LU, pivots, info = LUFactor.apply(A, pivot)
    _check_no_zero("linalg.lu_factor", info)
    return return_types.linalg_lu_factor((LU, pivots))


def _check_no_zero(who, info):
    check_info(
        who,
        info,
        "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)",
    )


@with_out
def lu(A, *, pivot=True) -> Any:
    """A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    Args:
        pivot: exchange rows, so that no small number divides. Without, P is empty; on CUDA only.

    >>> P, L, U = cresset.linalg.lu(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> U
    tensor([[2., 2.],
            [0., 1.]])
    """
    check_matrix("linalg.lu", A)
    _check_pivot("linalg.lu", A, pivot)
    LU, pivots, _ = LUFactor.apply(A, pivot)
    return return_types.linalg_lu(unpack(LU, pivots, "LinalgLuBackward0", unpack_pivots=pivot))


def unpack(LU, pivots, node, unpack_data=True, unpack_pivots=True):
    """(P, L, U) of a compact factorization, which autograd calls `node`; what is not asked for is an empty tensor."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    nothing = cresset.empty(0, dtype=LU.dtype, device=LU.device)
    P = permutation(pivots, m, LU.dtype) if unpack_pivots else nothing
    if not unpack_data:
        return P, nothing, cresset.empty(0, dtype=LU.dtype, device=LU.device)
    L = LU[..., :, :k].tril(-1) + cresset.eye(m, k, dtype=LU.dtype, device=LU.device)
    return P, *name_node((L, LU[..., :k, :].triu()), node)


def check_pivots(who, factor, pivots):
    """Raise unless `pivots` can be the row exchanges of a compact factorization."""
    if pivots.dtype != cresset.int32:
        raise RuntimeError(f"{who}: pivots should be a Tensor of scalar type torch.int32, got {pivots.dtype}")
    m, n = factor.shape[-2:]
    if tuple(pivots.shape) != (*factor.shape[:-2], min(m, n)):
        raise RuntimeError(
            f"{who}: Number of pivots per batch should be same as the dimension of the matrix, and the batches equal; "
            f"got shapes {tuple(pivots.shape)} and {tuple(factor.shape)}"
        )
    if is_without_values(pivots) or not pivots.numel():
        return
    pivots = all_samples(pivots)
    if pivots.is_cuda:  # without waiting for the device; its kernels exchange nothing by bad ones
        return _native.cuda.solver.check_pivots(who, pivots.abs().contiguous(), m)
    extremes = cresset.stack(pivots.abs().aminmax())
    if int(extremes[0]) < 1 or int(extremes[1]) > m:
        raise RuntimeError(f"{who}: pivots given must all be between 1 and {m}, the number of rows")


@with_out
def ldl_factor_ex(A, *, hermitian=False, check_errors=False) -> Any:
    """`ldl_factor` that reports a zero in D in `info` (0: none; k: element k, counted from 1).

    >>> cresset.linalg.ldl_factor_ex(cresset.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    who = "linalg.ldl_factor_ex"
    check_square(who, A)
    LD, pivots, info = _LDL.apply(A, hermitian)
    if check_errors:
        check_info(who, info, "The diagonal element {0} is zero, D is exactly singular")
    return return_types.linalg_ldl_factor_ex((LD, pivots, info))


@with_out
def ldl_factor(A, *, hermitian=False) -> Any:
    """A = L D Lᵀ (`hermitian`: L D Lᴴ) for symmetric A, in LAPACK's form, for `ldl_solve`. The lower triangle of A is
    read.

    >>> cresset.linalg.ldl_factor(cresset.tensor([[2.0, 0.0], [0.0, 3.0]])).LD
    tensor([[2., 0.],
            [0., 3.]])
    """
    check_square("linalg.ldl_factor", A)
    LD, pivots, info = _LDL.apply(A, hermitian)
    check_info("linalg.ldl_factor", info, "The diagonal element {0} is zero, D is exactly singular")
    return return_types.linalg_ldl_factor((LD, pivots))


class _LDL(BatchFunction):
    """A = L D Lᵀ or L D Lᴴ."""

    @staticmethod
    def forward(ctx, A, hermitian):
        LD, pivots, info = lapack.sytrf(A, hermitian)
        ctx.mark_non_differentiable(pivots, info)
        return LD, pivots, info

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("the derivative for 'linalg_ldl_factor_ex' is not implemented.")


class Geqrf(BatchFunction):
    """Householder's form of A = Q R."""

    _node_name = "GeqrfBackward0"

    @staticmethod
    def forward(ctx, A):
        check_matrix("geqrf", A, "input")
        return lapack.geqrf(A)

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


class QR(BatchFunction):
    """A = Q R."""

    _node_name = "LinalgQrBackward0"

    @staticmethod
    def forward(ctx, A, mode):
        m, n = A.shape[-2:]
        a, tau = lapack.geqrf(A)
        ctx.mode = mode
        if mode == "r":
            return cresset.empty(0, dtype=A.dtype, device=A.device), column_major(a[..., : min(m, n), :].triu())
        columns = m if mode == "complete" else min(m, n)
        Q, R = lapack.orgqr(a, tau, columns), column_major(_top(a, columns).triu())
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Q, R)
        return Q, R

    @staticmethod
    def backward(ctx, gQ, gR):
        """Not wide: gA = (gQ + Q sym(triu(gR Rᴴ - Qᴴ gQ))) R⁻ᴴ, where sym mirrors the triangle.

        If A is wide, the part right of the square, R₂ = Qᴴ A₂, gives gA₂ = Q gR₂ and adds A₂ gR₂ᴴ to gQ, where A₂ = Q
        R₂.
        """
        if ctx.mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to require gradients"
            )
        Q, R = ctx.saved_tensors
        m, n = Q.size(-2), R.size(-1)
        if ctx.mode == "complete" and m > n:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols, "
                f"got {m} by {n} matrices"
            )
        if gQ is None and gR is None:
            return None, None
        k, gR2 = R.size(-2), None
        gQ = cresset.zeros_like(Q) if gQ is None else gQ
        if n > m:
            if gR is not None:
                gR2 = gR[..., :, k:]
                gQ = gQ + Q @ R[..., :, k:] @ gR2.mH
                gR = gR[..., :, :k]
            R = R[..., :, :k]
        inner = -(Q.mH @ gQ) if gR is None else gR @ R.mH - Q.mH @ gQ
        inner = inner.triu()
        mirrored = inner + inner.triu(1).mH
        if mirrored.is_complex():
            mirrored = mirrored - mirrored.diagonal(0, -2, -1).imag.mul(1j).diag_embed()
        gA = solve_triangular(R.mH, gQ + Q @ mirrored, upper=False, left=False)
        if n > m:
            right = Q.new_zeros((*Q.shape[:-1], n - m)) if gR2 is None else Q @ gR2
            gA = cresset.cat([gA, right], -1)
        return gA, None


def _top(a, rows):
    """The first rows of a, with zeros below where there are fewer."""
    if rows <= a.size(-2):
        return a[..., :rows, :]
    return cresset.cat([a, a.new_zeros((*a.shape[:-2], rows - a.size(-2), a.size(-1)))], -2)


@autocast(cpu="float32")
@with_out
def qr(A, mode="reduced") -> Any:
    """A = Q R with orthonormal columns in Q and an upper triangle R.

    Args:
        mode: "reduced" (Q is m × min(m, n)), "complete" (Q is m × m), "r" (only R; Q is empty).

    >>> Q, R = cresset.linalg.qr(cresset.tensor([[0.0, 1.0], [2.0, 3.0]]))
    >>> R.abs()
    tensor([[2., 3.],
            [0., 1.]])
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return return_types.linalg_qr(QR.apply(A, mode))


def reflectors(input, tau):
    """Householder's reflectors H = I - tau v vᴴ, as pairs (v, tau): v is a column of `input` below a one."""
    m = input.size(-2)
    places = cresset.arange(m, device=input.device).unsqueeze(-1)
    for i in range(tau.size(-1)):
        column = input[..., :, i : i + 1]
        v = column.masked_fill(places < i, 0).masked_fill(places == i, 1)
        yield v, tau[..., i : i + 1].unsqueeze(-1)


@autocast(cpu="float32")
@with_out(casts=True)
def householder_product(input, tau):
    """The first columns of the product of Householder's reflectors, which `torch.geqrf` gives.

    >>> a, tau = cresset.geqrf(cresset.tensor([[0.0], [2.0]]))
    >>> cresset.linalg.householder_product(a, tau).abs()
    tensor([[0.],
            [1.]])
    """
    check_reflectors("linalg.householder_product", input, tau)
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(
            "linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], "
            f"got {m} and {n}"
        )
    if not is_differentiated(input, tau):
        return lapack.orgqr(input, tau, n)
    result = identity_in_place_of(input)
    for v, factor in reversed(list(reflectors(input, tau))):
        result = result - factor * (v @ (v.mH @ result))
    return name_node(result, "LinalgHouseholderProductBackward0")


def check_reflectors(who, input, tau):
    check_matrix(who, input, "input")
    if input.size(-1) < tau.size(-1) if tau.ndim else True:
        raise RuntimeError(
            f"{who}: input.shape[-1] must be greater than or equal to tau.shape[-1], "
            f"got shapes {tuple(input.shape)} and {tuple(tau.shape)}"
        )
    if input.ndim - tau.ndim != 1 or input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{who}: Expected tau to have one dimension less than input and the same batch, "
            f"got shapes {tuple(input.shape)} and {tuple(tau.shape)}"
        )
    if input.dtype != tau.dtype:
        raise RuntimeError(f"{who}: tau dtype {tau.dtype} does not match input dtype {input.dtype}")
