"""cuSOLVER and cuBLAS for tensors of a CUDA device: routines with the names of LAPACK's, of which the operators are
made (on_cuda.py).

Each takes tensors that its caller has checked and works on column-major copies. Nothing here is recorded for
derivatives, and nothing waits for the device, except where singular values have not converged.
"""

import functools
import warnings

import cresset

from .. import _native
from .checking import real_dtype
from .columns import column_major, in_columns, uninitialized

_solver = _native.cuda.solver


@functools.cache
def _is_there():
    problem = _solver.problem()
    if problem:
        warnings.warn(
            (
                f"linalg: cuSOLVER is not there, so matrices are factorized on the CPU: {problem}. pip install "
                "cresset[cuda] brings it"
            ),
            stacklevel=2,
        )
    return not problem


def routine(name, args):
    """The routine of this name for these arguments, or None if it is for the CPU."""
    if name not in _ROUTINES or not _is_there():
        return None
    if name == "geev" and not _solver.has_geev():
        return None
    if name in ("sytrf", "sytrs") and args[-1] and args[0].is_complex():  # Hermitian ones
        return None
    return globals()[name]


_ROUTINES = {
    "geev", "geqrf", "gesdd", "getrf", "getrs", "least_squares", "orgqr", "ormqr", "potrf", "potrs", "row_order",
    "syevd", "sytrf", "sytrs", "trsm",
}  # fmt: skip


def _infos(like):
    return cresset.zeros(like.shape[:-2], dtype=cresset.int32, device=like.device)


def getrf(A, pivot=True):
    lu, info = column_major(A), _infos(A)
    pivots = uninitialized(A, min(A.shape[-2:]), dtype=cresset.int32)
    if lu.numel():
        _solver.getrf(lu, pivots if pivot else None, info)
    if not pivot:
        pivots.copy_(cresset.arange(1, pivots.size(-1) + 1, dtype=cresset.int32, device=A.device))
    return lu, pivots, info


def getrs(lu, pivots, B, trans=b"N"):
    X = column_major(B)
    if X.numel():
        _solver.getrs(in_columns(lu), pivots.contiguous(), X, trans.decode())
    return X


def row_order(pivots, m):
    order = cresset.empty((*pivots.shape[:-1], m), dtype=cresset.int64, device=pivots.device)
    _solver.row_order(pivots.contiguous(), order)
    return order


def potrf(A, upper):
    factor, info = column_major(A), _infos(A)
    if factor.numel():
        _solver.potrf(factor, upper, info)
    return (factor.triu_() if upper else factor.tril_()), info


def trsm(A, B, upper, left, unitriangular):
    X, A = column_major(B), A.detach()
    if (
        X.numel() and A.is_contiguous() and not A.is_conj()
    ):  # row after row: what lies column after column is the transpose
        _solver.trsm(A.mT, X, not upper, left, unitriangular, "T")
    elif X.numel():
        _solver.trsm(in_columns(A), X, upper, left, unitriangular, "N")
    return X


def potrs(factor, B, upper):
    X, factor = column_major(B), factor.detach()
    by_rows = factor.is_contiguous() and not factor.is_complex()
    if X.numel():
        _solver.potrs(factor.mT if by_rows else in_columns(factor), X, upper, by_rows)
    return X


def geqrf(A):
    a, tau = column_major(A), uninitialized(A, min(A.shape[-2:]))
    if a.numel():
        _solver.geqrf(a, tau)
    return a, tau


def orgqr(a, tau, columns):
    q = uninitialized(a, a.size(-2), columns)
    kept = min(columns, a.size(-1))
    q.zero_()[..., :kept].copy_(a.detach()[..., :kept])
    if not tau.size(-1):
        q.diagonal(0, -2, -1).fill_(1)
    elif q.numel():
        _solver.orgqr(q, tau.detach().contiguous().resolve_conj())
    return q


def ormqr(a, tau, C, left, adjoint):
    a, C = in_columns(a), column_major(C)
    if C.numel() and tau.size(-1):
        _solver.ormqr(a, tau.detach().contiguous().resolve_conj(), C, left, _adjoint(a) if adjoint else "N")
    return C


def _adjoint(a):
    return "C" if a.is_complex() else "T"


def _no_hermitian(who, A, hermitian):
    if hermitian and A.is_complex():
        raise RuntimeError(
            f"{who}: complex tensors with hermitian=True are not supported on CUDA: cuSOLVER has symmetric matrices "
            "only; call it on the CPU"
        )


def sytrf(A, hermitian):
    _no_hermitian("linalg.ldl_factor", A, hermitian)
    ld, info = column_major(A), _infos(A)
    pivots = uninitialized(A, A.size(-1), dtype=cresset.int32)
    if ld.numel():
        _solver.sytrf(ld, pivots, info)
    return ld.tril_(), pivots, info


def sytrs(ld, pivots, B, hermitian):
    _no_hermitian("linalg.ldl_solve", ld, hermitian)
    X = column_major(B)
    if X.numel():
        _solver.sytrs(in_columns(ld), pivots.to(cresset.int64).contiguous(), X)
    return X


def syevd(A, upper, vectors):
    V, info = column_major(A), _infos(A)
    L = uninitialized(A, A.size(-1), dtype=real_dtype(A.dtype))
    if V.numel():
        _solver.syevd(V, L, upper, vectors, info)
    return L, V, info


def gesdd(A, vectors, full_matrices=False, driver=None):
    """By Jacobi's rotations; if those of a matrix have not converged, by QR. `driver` "gesvd" or "gesvdj": only by one
    of them.
    """
    if driver == "gesvd" and min(A.shape[-2:]):
        U, S, Vh, info = _by_bidiagonals(A, vectors, full_matrices)
    else:
        U, S, Vh, info = _by_rotations(A, vectors, full_matrices)
    if not bool(info.any() | S.isnan().any()):  # the library finds nothing wrong with nan, and gives nan
        return U, S, Vh, info
    broken = ~A.detach().isfinite().all(-1).all(-1)
    if driver not in ("gesvd", "gesvdj") and not bool(broken.any()):
        U, S, Vh, info = _by_bidiagonals(A, vectors, full_matrices)
    return U, S, Vh, info.masked_fill(broken, -4)  # LAPACK's number for a nan in A


def _by_rotations(A, vectors, full_matrices):
    m, n = A.shape[-2:]
    k = min(m, n)
    S, info = uninitialized(A, k, dtype=real_dtype(A.dtype)), _infos(A)
    U = V = None
    if vectors:
        # Small matrices are worked on together, which gives square U and V.
        whole = full_matrices or (max(m, n) <= 32 and info.numel() > 1)
        U, V = uninitialized(A, m, m if whole else k), uninitialized(A, n, n if whole else k)
    if S.numel():
        _solver.gesvdj(column_major(A), S, U, V, info)
    else:
        for basis in (U, V) if vectors else ():
            basis.zero_()
            basis.diagonal(0, -2, -1).fill_(1)
    if not vectors:
        return None, S, None, info
    return (U, S, V.mH, info) if full_matrices else (U[..., :k], S, V[..., :k].mH, info)


def _by_bidiagonals(A, vectors, full_matrices):
    m, n = A.shape[-2:]
    if m < n:  # the library takes matrices that are not wide
        U, S, Vh, info = _by_bidiagonals(A.mH, vectors, full_matrices)
        return (Vh.mH, S, U.mH, info) if vectors else (None, S, None, info)
    S, info = uninitialized(A, n, dtype=real_dtype(A.dtype)), _infos(A)
    U, Vh = (uninitialized(A, m, m if full_matrices else n), uninitialized(A, n, n)) if vectors else (None, None)
    _solver.gesvd(column_major(A), S, U, Vh, info)
    return U, S, Vh, info


def geev(A, vectors):
    n, is_complex, info = A.size(-1), A.is_complex(), _infos(A)
    values = uninitialized(A, n if is_complex else 2 * n)
    V = uninitialized(A, n, n) if vectors else None
    if A.numel():
        _solver.geev(column_major(A), values, V, info)
    if is_complex:
        return values, V, info
    real, imaginary = values[..., :n], values[..., n:]
    return cresset.complex(real, imaginary), (paired(V, imaginary) if vectors else None), info


def paired(V, imaginary):
    """Real matrices' eigenvectors: of a pair of conjugate values, geev gives the real and the imaginary part as
    columns.
    """
    # Column j opens a pair if its value's imaginary part is positive; column j + 1 then closes it.
    opens, closes = (imaginary > 0).unsqueeze(-2), (imaginary < 0).unsqueeze(-2)
    following, previous = V.roll(-1, -1), V.roll(1, -1)
    real = cresset.where(closes, previous, V)
    zero = cresset.zeros((), dtype=V.dtype, device=V.device)
    return cresset.complex(real, cresset.where(opens, following, cresset.where(closes, -V, zero)))


def least_squares(A, B, _rcond, _driver):
    """By QR, which is LAPACK's gels: A has full rank."""
    m, n = A.shape[-2:]
    info = _infos(A)
    if m >= n:
        X = column_major(B)
    else:
        X = uninitialized(A, n, B.size(-1))
        X.zero_()[..., :m, :].copy_(B.detach())
    if not (A.numel() and X.numel()):
        return X, None, None, info
    if m >= n and _solver.least_squares(in_columns(A), X, info):
        return X, None, None, info
    adjoint = _adjoint(A)
    a, tau = geqrf(A if m >= n else A.mH)
    k = min(m, n)
    square, solved = column_major(a[..., :k, :]), column_major(X[..., :k, :])
    if m >= n:
        _solver.ormqr(a, tau, X, True, adjoint)
        solved = column_major(X[..., :k, :])
        _solver.trsm(square, solved, True, True, False, "N")
        X[..., :k, :] = solved
    else:
        _solver.trsm(square, solved, True, True, False, adjoint)
        X.zero_()[..., :k, :] = solved
        _solver.ormqr(a, tau, X, True, "N")
    zeros = (square.diagonal(0, -2, -1) == 0).int()
    return X, None, None, cresset.where(zeros.any(-1), zeros.argmax(-1) + 1, 0).int()
