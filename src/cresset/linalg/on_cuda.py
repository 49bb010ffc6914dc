"""The operators of linear algebra on a CUDA device: cuSOLVER's and cuBLAS's routines (cusolver.py), which are reached
from Python. Each function has an operator's name and arguments and gives its results, or NotImplemented where the
library has no routine: then the CPU computes.
"""

import cresset

from .. import _native
from ..ops.linalg_equations import are_vectors, sign_of
from ..ops.linalg_factors import permutation, unit_lower
from . import cusolver
from .checking import is_without_values
from .columns import column_major


def _checked(who, results, wanted=True):
    if wanted and not is_without_values(results[-1]):
        cresset._linalg_check_errors(results[-1], who, is_matrix=results[-1].ndim == 0)
    return results


def _expanded(batch, *tensors):
    return [tensor.expand(*batch, *tensor.shape[-2:]) for tensor in tensors]


def _batch_of(A, B):
    return cresset.broadcast_shapes(A.shape[:-2], B.shape[:-2])


def linalg_cholesky_ex(A, upper, check):
    routine = cusolver.routine("potrf", (A, upper))
    return NotImplemented if routine is None else _checked("linalg.cholesky_ex", routine(A, upper), check)


def linalg_lu_factor_ex(A, pivot, check):
    routine = cusolver.routine("getrf", (A, pivot))
    return NotImplemented if routine is None else _checked("linalg.lu_factor_ex", routine(A, pivot), check)


def linalg_lu(A, pivot):
    routine = cusolver.routine("getrf", (A, pivot))
    if routine is None:
        return NotImplemented
    LU, pivots, _ = routine(A, pivot)
    return lu_unpack(LU, pivots, True, pivot)


def lu_unpack(LU, pivots, unpack_data, unpack_pivots):
    m, n = LU.shape[-2:]
    if unpack_pivots:
        _check_pivots("lu_unpack", pivots, LU)
    P = permutation(pivots, m, LU.dtype) if unpack_pivots else None
    if not unpack_data:
        return P, None, None
    k = min(m, n)
    return P, unit_lower(LU, k), LU[..., :k, :].triu()


def _linalg_row_order(pivots, rows):
    routine = cusolver.routine("row_order", (pivots, rows))
    return NotImplemented if routine is None else routine(pivots, rows)


def linalg_ldl_factor_ex(A, hermitian, check):
    routine = cusolver.routine("sytrf", (A, hermitian))
    return NotImplemented if routine is None else _checked("linalg.ldl_factor_ex", routine(A, hermitian), check)


def linalg_ldl_solve(LD, pivots, B, hermitian):
    routine = cusolver.routine("sytrs", (LD, pivots, B, hermitian))
    if routine is None:
        return NotImplemented
    _check_pivots("linalg.ldl_solve", pivots, LD)
    batch = _batch_of(LD, B)
    LD, B = _expanded(batch, LD, B)
    return routine(LD, pivots.expand(LD.shape[:-1]), B, hermitian)


def geqrf(A):
    routine = cusolver.routine("geqrf", (A,))
    return NotImplemented if routine is None else routine(A)


def linalg_qr(A, mode):
    routine = cusolver.routine("geqrf", (A,))
    if routine is None:
        return NotImplemented
    m, n = A.shape[-2:]
    a, tau = routine(A)
    if mode == "r":
        return None, column_major(a[..., : min(m, n), :].triu())
    columns = m if mode == "complete" else min(m, n)
    return cusolver.orgqr(a, tau, columns), column_major(_top(a, columns).triu())


def _top(a, rows):
    """The first rows of a, with zeros below where there are fewer."""
    if rows <= a.size(-2):
        return a[..., :rows, :]
    return cresset.cat([a, a.new_zeros((*a.shape[:-2], rows - a.size(-2), a.size(-1)))], -2)


def linalg_householder_product(input, tau):
    routine = cusolver.routine("orgqr", (input, tau, input.size(-1)))
    return NotImplemented if routine is None else routine(input, tau, input.size(-1))


def ormqr(input, tau, other, left, transpose):
    routine = cusolver.routine("ormqr", (input, tau, other, left, transpose))
    return NotImplemented if routine is None else routine(input, tau, other, left, transpose)


def _linalg_solve_ex(A, B, left, check):
    routine = cusolver.routine("getrf", (A,))
    if routine is None:
        return NotImplemented
    of_vectors = are_vectors(A, B)
    if of_vectors:
        B = B.unsqueeze(-1)
    LU, pivots, info = routine(A)
    X = _solved(LU, pivots, B, left, False)
    return _checked("linalg.solve_ex", (X.squeeze(-1) if of_vectors else X, LU, pivots, info), check)


def _solved(LU, pivots, B, left, adjoint):
    batch = _batch_of(LU, B)
    LU, B = _expanded(batch, LU, B)
    pivots = pivots.expand(LU.shape[:-1])
    if left:
        return cusolver.getrs(LU, pivots, B, b"C" if adjoint else b"N")
    # X A = B is Aᴴ Xᴴ = Bᴴ.
    return cusolver.getrs(LU, pivots, B.mH, b"N" if adjoint else b"C").mH


def linalg_inv_ex(A, check):
    routine = cusolver.routine("getrf", (A,))
    if routine is None:
        return NotImplemented
    LU, pivots, info = routine(A)
    identity = cresset.eye(A.size(-1), dtype=A.dtype, device=A.device).expand(A.shape)
    return _checked("linalg.inv_ex", (cusolver.getrs(LU, pivots, identity), info), check)


def linalg_lu_solve(LU, pivots, B, left, adjoint):
    if cusolver.routine("getrs", (LU, pivots, B)) is None:
        return NotImplemented
    _check_pivots("linalg.lu_solve", pivots, LU)
    return _solved(LU, pivots, B, left, adjoint)


def _check_pivots(who, pivots, factor):
    if pivots.numel():  # without waiting for the device; its kernels exchange nothing by bad ones
        _native.cuda.solver.check_pivots(who, pivots.abs().contiguous(), factor.size(-2))


def linalg_solve_triangular(A, B, upper, left, unitriangular):
    routine = cusolver.routine("trsm", (A, B, upper, left, unitriangular))
    if routine is None:
        return NotImplemented
    return routine(*_expanded(_batch_of(A, B), A, B), upper, left, unitriangular)


def cholesky_solve(B, L, upper):
    routine = cusolver.routine("potrs", (L, B, upper))
    return NotImplemented if routine is None else routine(*_expanded(_batch_of(L, B), L, B), upper)


def cholesky_inverse(L, upper):
    return cholesky_solve(cresset.eye(L.size(-1), dtype=L.dtype, device=L.device), L, upper)


def _linalg_det(A):
    routine = cusolver.routine("getrf", (A,))
    if routine is None:
        return NotImplemented
    LU, pivots, _ = routine(A)
    return LU.diagonal(0, -2, -1).prod(-1) * sign_of(pivots).to(A.dtype), LU, pivots


def _linalg_slogdet(A):
    routine = cusolver.routine("getrf", (A,))
    if routine is None:
        return NotImplemented
    LU, pivots, _ = routine(A)
    diagonal = LU.diagonal(0, -2, -1)
    sign = diagonal.sgn().prod(-1) * sign_of(pivots).to(A.dtype)
    return sign, diagonal.abs().log().sum(-1), LU, pivots


def _linalg_lstsq(A, B, rcond, driver):
    routine = cusolver.routine("least_squares", (A, B, rcond, driver))
    if routine is None:
        return NotImplemented
    m, n = A.shape[-2:]
    X, rank, values, info = routine(A, B, rcond, driver)
    _checked("linalg.lstsq by gels", (info,))
    X = X[..., :n, :].clone()
    return X, (A @ X - B).abs().square().sum(-2) if m > n else None, rank, values


def _linalg_eigh(A, UPLO, compute_v):
    upper = UPLO in ("U", "u")
    routine = cusolver.routine("syevd", (A, upper, compute_v))
    if routine is None:
        return NotImplemented
    L, V, info = routine(A, upper, compute_v)
    _checked("linalg.eigh" if compute_v else "linalg.eigvalsh", (info,))
    return L, V if compute_v else None


def _linalg_eig(A, compute_v):
    who = "linalg.eig" if compute_v else "linalg.eigvals"
    routine = cusolver.routine("geev", (A, compute_v))
    if routine is None:
        return NotImplemented
    if not bool(A.isfinite().all()):
        raise RuntimeError(f"torch.{who}: input tensor should not contain infs or NaNs.")
    L, V, info = routine(A, compute_v)
    _checked(who, (info,))
    return L, V


def _linalg_svd(A, full_matrices, compute_uv, driver):
    routine = cusolver.routine("gesdd", (A, compute_uv, full_matrices, driver))
    if routine is None:
        return NotImplemented
    U, S, Vh, info = routine(A, compute_uv, full_matrices, driver)
    _checked("linalg.svd", (info,))
    return U, S, Vh
