"""Determinants, and the logarithms of large ones."""

from typing import Any

import cresset

from ..autograd.function import BatchFunction
from ..ops import return_types
from ..ops.batches import all_samples
from . import lapack
from .calling import with_out
from .checking import check_square, is_without_values


def _sign_of(pivots):
    """1 or -1 for an even or odd number of row exchanges."""
    places = cresset.arange(1, pivots.size(-1) + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


class Determinant(BatchFunction):
    """The product of U's diagonal in A = P L U, times P's sign."""

    _node_name = "LinalgDetBackward0"

    @staticmethod
    def forward(ctx, A):
        LU, pivots, _ = lapack.getrf(A)
        det = LU.diagonal(0, -2, -1).prod(-1) * _sign_of(pivots).to(A.dtype)
        ctx.factors = LU, pivots
        ctx.save_for_backward(A, det)
        return det

    @staticmethod
    def backward(ctx, grad):
        """gA = g conj(det) A⁻ᴴ: the conjugate of the cofactors, which a singular matrix has as well.

        To be differentiated again they are taken from the singular values, U diag(the products of all others) Vᴴ;
        otherwise from A = P L U, where a zero on the diagonal of U gives way to a tiny number.
        """
        A, value = ctx.saved_tensors
        if not A.numel():
            return cresset.zeros_like(A)
        identity = cresset.eye(A.size(-1), dtype=A.dtype, device=A.device).expand(A.shape)
        if not cresset.is_grad_enabled():
            LU, pivots = ctx.factors
            diagonal = LU.diagonal(0, -2, -1)
            fixed = diagonal.masked_fill(diagonal == 0, cresset.finfo(A.dtype).eps)
            value = fixed.prod(-1) * _sign_of(pivots).to(A.dtype)
            LU = LU + (fixed - diagonal).diag_embed()
            return lapack.getrs(LU, pivots, identity * _as_matrix(grad * value.conj()), b"C")
        tiny = 100 * cresset.finfo(A.dtype).eps
        if not is_without_values(value) and bool((all_samples(value.detach()).abs() < tiny).any()):
            U, S, Vh = cresset.linalg.svd(A, full_matrices=False)
            factor = (det(U) * det(Vh)).conj() * grad
            return (U * (_products_of_others(S).to(A.dtype) * factor.unsqueeze(-1)).unsqueeze(-2)) @ Vh
        return cresset.linalg.solve_ex(A.mH, identity * _as_matrix(grad * value.conj())).result


def _as_matrix(number):
    return number.unsqueeze(-1).unsqueeze(-1)


def _products_of_others(values):
    """For each element the product of all others, without a division."""
    n = values.size(-1)
    ones = cresset.eye(n, dtype=cresset.bool, device=values.device)
    return values.unsqueeze(-2).expand(*values.shape, n).masked_fill(ones, 1).prod(-1)


@with_out
def det(A):
    """The determinant.

    >>> cresset.linalg.det(cresset.tensor([[1.0, 2.0], [0.0, 3.0]]))
    tensor(3.)
    """
    check_square("linalg.det", A)
    return Determinant.apply(A)


class SignAndLog(BatchFunction):
    """sign and log|det| with det = sign * exp(log|det|)."""

    _node_name = "LinalgSlogdetBackward0"

    @staticmethod
    def forward(ctx, A):
        LU, pivots, _ = lapack.getrf(A)
        diagonal = LU.diagonal(0, -2, -1)
        sign = diagonal.sgn().prod(-1) * _sign_of(pivots).to(A.dtype)
        ctx.factors = LU, pivots
        ctx.save_for_backward(A, sign)
        ctx.set_materialize_grads(False)
        return sign, diagonal.abs().log().sum(-1)

    @staticmethod
    def backward(ctx, grad_sign, grad_log):
        """gA = c A⁻ᴴ with c = g_log, and for complex A the imaginary part -Im(conj(g_sign) sign): d log det = tr(A⁻¹
        dA).
        """
        A, sign = ctx.saved_tensors
        factor = grad_log
        if not A.is_complex() and grad_log is None:  # the sign of a real determinant does not change
            return cresset.zeros_like(A)
        if A.is_complex():
            grad_log, grad_sign = (
                cresset.zeros_like(t) if g is None else g for t, g in ((sign.real, grad_log), (sign, grad_sign))
            )
            factor = cresset.complex(grad_log, -(grad_sign.conj() * sign).imag)
        identity = cresset.eye(A.size(-1), dtype=A.dtype, device=A.device).expand(A.shape)
        if A.numel() and not cresset.is_grad_enabled():
            return lapack.getrs(*ctx.factors, identity * _as_matrix(factor), b"C")
        return cresset.linalg.solve_ex(A.mH, identity * _as_matrix(factor)).result


@with_out
def slogdet(A) -> Any:
    """The determinant's sign (a number of size 1, or 0) and the logarithm of its absolute value.

    >>> sign, logabsdet = cresset.linalg.slogdet(cresset.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.))
    """
    check_square("linalg.slogdet", A)
    return return_types.linalg_slogdet(SignAndLog.apply(A))
