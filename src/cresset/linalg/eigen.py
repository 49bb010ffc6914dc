"""Eigenvalues and singular values, and the vectors that belong to them.

In the derivatives, gX is the gradient of X and E the table of differences of the values. Vectors have a free sign
(complex ones: phase), so a loss that depends on it has no derivative.
"""

from typing import Any

import cresset

from ..autograd.function import BatchFunction
from ..ops import return_types
from ..ops.autocast import autocast
from ..ops.batches import all_samples
from . import lapack
from .calling import is_differentiated, with_out
from .checking import check_info, check_matrix, check_square, first_failure, is_without_values


def _differences(values):
    """E[j, k] = values[k] - values[j], and 1 on the diagonal."""
    ones = cresset.eye(values.size(-1), dtype=cresset.bool, device=values.device)
    return (values.unsqueeze(-2) - values.unsqueeze(-1)).masked_fill(ones, 1)


def _without_diagonal(matrix):
    return matrix.masked_fill(cresset.eye(matrix.size(-1), dtype=cresset.bool, device=matrix.device), 0)


def _check_phase(who, grad, turned, expected=None):
    """Raise if a loss depends on the free phase of complex vectors: it changes with the imaginary part of diag(Vᴴ gV).

    Not if the gradient is a variable itself: forward mode and second derivatives are linear in it and ask for any.
    """
    if not turned.is_complex() or grad.requires_grad:
        return
    found = turned.diagonal(0, -2, -1).imag
    if not cresset.allclose(found, cresset.zeros_like(found) if expected is None else expected, rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            f"{who}_backward: The vectors in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this phase term, making it ill-defined."
        )


class SVD(BatchFunction):
    """A = U diag(S) Vᴴ."""

    _node_name = "LinalgSvdBackward0"

    @staticmethod
    def forward(ctx, A, full_matrices, driver=None):
        U, S, Vh, info = lapack.gesdd(A, True, full_matrices, driver)
        check_svd(info)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(U, S, Vh)
        return U, S, Vh

    @staticmethod
    def backward(ctx, gU, gS, gVh):
        """gA = U X Vᴴ + (I - U Uᴴ) gU S⁻¹ Vᴴ + U S⁻¹ gVᴴ (I - V Vᴴ), with

        X = (skew(Uᴴ gU) S + S skew(Vᴴ gV)) / E + diag(gS), E of the squares of S, skew(M) = M - Mᴴ, and for complex A
        also the diagonal of skew(Uᴴ gU) / 2S. The second and third terms are zero unless A is tall and wide,
        respectively.
        """
        if gU is None and gS is None and gVh is None:
            return None, None, None
        U, S, Vh = ctx.saved_tensors
        k, m, n = S.size(-1), U.size(-2), Vh.size(-1)
        U, Vh = U[..., :k], Vh[..., :k, :]
        gU = None if gU is None else gU[..., :k]
        gVh = None if gVh is None else gVh[..., :k, :]
        inner = None if gS is None else gS.diag_embed().to(U.dtype)
        around = None
        if gU is not None:
            turn_U = U.mH @ gU
            turn_U = turn_U - turn_U.mH
            around = turn_U * S.unsqueeze(-2)
        if gVh is not None:
            turn_V = Vh @ gVh.mH
            turn_V = turn_V - turn_V.mH
            other = S.unsqueeze(-1) * turn_V
            around = other if around is None else around + other
        if around is not None:
            around = _without_diagonal(around) / _differences(S * S)
            if U.is_complex() and gU is not None and gVh is not None:
                _check_phase("svd", gU, turn_U, -turn_V.diagonal(0, -2, -1).imag)
                around = around + (turn_U.diagonal(0, -2, -1) / (2 * S)).diag_embed()
            inner = around if inner is None else inner + around
        left = U @ inner
        if m > k and gU is not None:
            scaled = gU / S.unsqueeze(-2)
            left = left + scaled - U @ (U.mH @ scaled)
        result = left @ Vh
        if n > k and gVh is not None:
            scaled = gVh / S.unsqueeze(-1)
            result = result + U @ (scaled - (scaled @ Vh.mH) @ Vh)
        return result, None, None


def check_svd(info):
    failure = first_failure(info)
    if failure is not None and failure[1] < 0:
        check_info(
            "linalg.svd", info, "The algorithm failed to converge because the input matrix contained non-finite values."
        )
    check_info(
        "linalg.svd",
        info,
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "singular values (error code: {}).",
    )


def _check_driver(A, driver):
    if driver is not None and not A.is_cuda:
        raise RuntimeError(
            f"torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs, got {driver!r}"
        )
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(
            f"torch.linalg.svd: unknown svd driver {driver!r}; choose from gesvd, gesvdj, gesvda or None"
        )


@autocast(cpu="float32")
@with_out
def svd(A, full_matrices=True, *, driver=None) -> Any:
    """A = U diag(S) Vh with orthonormal columns in U and rows in Vh; S falls and is not negative.

    Args:
        full_matrices: U and Vh are square; else they have min(m, n) columns and rows.
        driver: on CUDA, cuSOLVER's routine: "gesvdj" (rotations), "gesvd" (QR); by default the first, and the second
            where it does not converge. "gesvda" stands for the default.

    >>> cresset.linalg.svd(cresset.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    check_matrix("linalg.svd", A)
    _check_driver(A, driver)
    return return_types.linalg_svd(SVD.apply(A, full_matrices, driver))


@autocast(cpu="float32")
@with_out
def svdvals(A, *, driver=None):
    """The singular values, in falling order.

    >>> cresset.linalg.svdvals(cresset.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    check_matrix("linalg.svdvals", A)
    _check_driver(A, driver)
    if is_differentiated(A):
        return SVD.apply(A, False, driver)[1]
    _, S, _, info = lapack.gesdd(A, False, False, driver)
    check_svd(info)
    return S


class Eigh(BatchFunction):
    """A = V diag(L) Vᴴ for symmetric (Hermitian) A."""

    _node_name = "LinalgEighBackward0"

    @staticmethod
    def forward(ctx, A, upper):
        L, V, info = lapack.syevd(A, upper, True)
        _check_eigh(info)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(L, V)
        return L, V

    @staticmethod
    def backward(ctx, gL, gV):
        """gA = V (diag(gL) + (Vᴴ gV) / E) Vᴴ."""
        if gL is None and gV is None:
            return None, None
        L, V = ctx.saved_tensors
        if gV is None:
            return (V * gL.unsqueeze(-2)) @ V.mH, None
        turn = V.mH @ gV
        _check_phase("linalg_eigh", gV, turn)
        inner = _without_diagonal(turn) / _differences(L)
        if gL is not None:
            inner = inner + gL.diag_embed()
        return V @ inner @ V.mH, None


def _check_eigh(info, who="linalg.eigh"):
    check_info(
        who,
        info,
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues (error code: {}).",
    )


def _is_upper(who, UPLO):
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"{who}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO in ("U", "u")


@autocast(cpu="float32")
@with_out
def eigh(A, UPLO="L") -> Any:
    """A = V diag(L) Vᴴ for a symmetric (Hermitian) A, of which one triangle is read; L rises.

    >>> cresset.linalg.eigh(cresset.tensor([[3.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 3.])
    """
    check_square("linalg.eigh", A)
    return return_types.linalg_eigh(Eigh.apply(A, _is_upper("linalg.eigh", UPLO)))


@autocast(cpu="float32")
@with_out
def eigvalsh(A, UPLO="L"):
    """The eigenvalues of a symmetric (Hermitian) matrix, of which one triangle is read, in rising order.

    >>> cresset.linalg.eigvalsh(cresset.tensor([[3.0, 0.0], [0.0, 1.0]]))
    tensor([1., 3.])
    """
    check_square("linalg.eigvalsh", A)
    upper = _is_upper("linalg.eigvalsh", UPLO)
    if is_differentiated(A):
        return Eigh.apply(A, upper)[0]
    L, _, info = lapack.syevd(A, upper, False)
    _check_eigh(info)
    return L


class Eig(BatchFunction):
    """A V = V diag(L)."""

    _node_name = "LinalgEigBackward0"

    @staticmethod
    def forward(ctx, A):
        L, V, info = lapack.geev(A, True)
        _check_eigh(info, "linalg.eig")
        ctx.of_real = not A.is_complex()
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(L, V)
        return L, V

    @staticmethod
    def backward(ctx, gL, gV):
        """gA = V⁻ᴴ (diag(gL) + (Vᴴ gV - Vᴴ V diag(Re(Vᴴ gV))) / conj(E)) Vᴴ, of which a real A takes the real part."""
        if gL is None and gV is None:
            return None
        L, V = ctx.saved_tensors
        if gV is None:
            inner = gL.diag_embed()
        else:
            turn = V.mH @ gV
            _check_phase("linalg_eig", gV, turn)
            # Vectors have length 1: what would lengthen them is taken away.
            turn = turn - (V.mH @ V) * turn.diagonal(0, -2, -1).real.unsqueeze(-2)
            inner = _without_diagonal(turn) / _differences(L).conj()
            if gL is not None:
                inner = inner + gL.diag_embed()
        gA = cresset.linalg.solve(V.mH, inner @ V.mH)
        return gA.real if ctx.of_real else gA


def _check_finite(who, A):
    if not is_without_values(A) and not bool(all_samples(A.detach()).isfinite().all()):
        raise RuntimeError(f"{who}: input tensor should not contain infs or NaNs.")


@autocast(cpu="float32")
@with_out(casts=True)
def eig(A) -> Any:
    """A V = V diag(L) for any square A that has enough eigenvectors; L and V are complex, in no order.

    >>> cresset.linalg.eig(cresset.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.imag
    tensor([ 1., -1.])
    """
    check_square("linalg.eig", A)
    _check_finite("torch.linalg.eig", A)
    return return_types.linalg_eig(Eig.apply(A))


@autocast(cpu="float32")
@with_out(casts=True, result="eigenvalues")
def eigvals(A):
    """The eigenvalues of any square matrix, complex, in no order.

    >>> cresset.linalg.eigvals(cresset.tensor([[0.0, -1.0], [1.0, 0.0]])).imag
    tensor([ 1., -1.])
    """
    check_square("linalg.eigvals", A)
    _check_finite("torch.linalg.eigvals", A)
    if is_differentiated(A):
        return Eig.apply(A)[0]
    L, _, info = lapack.geev(A, False)
    _check_eigh(info, "linalg.eigvals")
    return L
