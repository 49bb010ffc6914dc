"""What the routines of lapack.py give, without its values: for tensors of the meta device and fake ones, which have a
shape and no memory. The names and arguments are those of the routines.
"""

import cresset

from .checking import real_dtype


def _columns(like, rows, columns, dtype=None):
    """Matrices of the batch of `like`, column after column."""
    return like.new_empty((*like.shape[:-2], columns, rows), dtype=dtype or like.dtype).mT


def _alike(matrices):
    return _columns(matrices, *matrices.shape[-2:])


def _vectors(like, size, dtype=None):
    return like.new_empty((*like.shape[:-2], size), dtype=dtype or like.dtype)


def _infos(like):
    return like.new_empty(like.shape[:-2], dtype=cresset.int32)


def getrf(A, _pivot=True):
    return _alike(A), _vectors(A, min(A.shape[-2:]), cresset.int32), _infos(A)


def getrs(_lu, _pivots, B, _trans=b"N"):
    return _alike(B)


def row_order(pivots, m):
    return pivots.new_empty((*pivots.shape[:-1], m), dtype=cresset.int64)


def potrf(A, _upper):
    return _alike(A), _infos(A)


def trsm(_A, B, _upper, _left, _unitriangular):
    return _alike(B)


def potrs(_factor, B, _upper):
    return _alike(B)


def geqrf(A):
    return _alike(A), _vectors(A, min(A.shape[-2:]))


def orgqr(a, _tau, columns):
    return _columns(a, a.size(-2), columns)


def ormqr(_a, _tau, C, _left, _adjoint):
    return _alike(C)


def gesdd(A, vectors, full_matrices=False, _driver=None):
    m, n = A.shape[-2:]
    k = min(m, n)
    U = _columns(A, m, m if full_matrices else k) if vectors else None
    Vh = _columns(A, n if full_matrices else k, n) if vectors else None
    return U, _vectors(A, k, real_dtype(A.dtype)), Vh, _infos(A)


def syevd(A, _upper, _with_vectors):
    return _vectors(A, A.size(-1), real_dtype(A.dtype)), _alike(A), _infos(A)


def geev(A, vectors):
    double = A.dtype in (cresset.float64, cresset.complex128)
    dtype = cresset.complex128 if double else cresset.complex64
    V = _columns(A, *A.shape[-2:], dtype) if vectors else None
    return _vectors(A, A.size(-1), dtype), V, _infos(A)


def sytrf(A, _hermitian):
    return _alike(A), _vectors(A, A.size(-1), cresset.int32), _infos(A)


def sytrs(_ld, _pivots, B, _hermitian):
    return _alike(B)


def least_squares(A, B, _rcond, driver):
    values = _vectors(A, min(A.shape[-2:]), real_dtype(A.dtype)) if driver in ("gelsd", "gelss") else None
    ranks = None if driver == "gels" else A.new_empty(A.shape[:-2], dtype=cresset.int64)
    return _columns(A, max(A.shape[-2:]), B.size(-1)), ranks, values, _infos(A)
