"""Functions of matrices that PyTorch also has outside `torch.linalg`, mostly under older names and signatures."""

import math
import sys
from typing import Any

import cresset

from .._native import name_node
from . import return_types
from .dimensions import is_integer
from .registry import function


@function(method=True)
def det(input):
    """The determinant: another name of `linalg.det`.

    >>> cresset.det(cresset.tensor([[1.0, 2.0], [0.0, 3.0]]))
    tensor(3.)
    """
    return cresset.linalg_det(input)


@function(method=True)
def logdet(input):
    """The logarithm of the determinant: NaN if that is negative, -inf if it is zero.

    >>> cresset.logdet(cresset.eye(2))
    tensor(0.)
    """
    sign, logabsdet = cresset.linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logabsdet
    return cresset.where(
        sign == -1, cresset.full((), math.nan, dtype=logabsdet.dtype, device=logabsdet.device), logabsdet
    )


@function(method=True, out=True)
def slogdet(input) -> Any:
    """The determinant's sign and the logarithm of its absolute value: another name of `linalg.slogdet`.

    >>> cresset.slogdet(cresset.eye(2)).sign
    tensor(1.)
    """
    return return_types.slogdet(cresset.linalg_slogdet(input))


@function(method=True, out=True, autocast={"cpu": "float32"})
def inverse(input):
    """The inverse of a square matrix: another name of `linalg.inv`.

    >>> cresset.inverse(cresset.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return cresset.linalg_inv(input)


@function(method=True, autocast={"cpu": "float32"})
def pinverse(input, rcond=1e-15):
    """The pseudo-inverse: `linalg.pinv`, with an older default.

    >>> cresset.pinverse(cresset.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return cresset.linalg.pinv(input, rtol=rcond)


@function(method=True)
def matrix_exp(input):
    """The exponential of a matrix: another name of `linalg.matrix_exp`.

    >>> cresset.matrix_exp(cresset.zeros(1, 1))
    tensor([[1.]])
    """
    return cresset.linalg.matrix_exp(input)


@function(method=True, out=True)
def matrix_power(input, n):
    """The product of n times the same matrix: another name of `linalg.matrix_power`.

    >>> cresset.matrix_power(cresset.tensor([[2]]), 3)
    tensor([[8]])
    """
    return cresset.linalg.matrix_power(input, n)


@function(method=True, out=True, autocast={"cpu": "float32"})
def cholesky(input, upper=False):
    """The triangular L with A = L Lᴴ: an older name of `linalg.cholesky`.

    >>> cresset.cholesky(cresset.tensor([[4.0]]))
    tensor([[2.]])
    """
    if not input.numel():
        return name_node(input.clone(memory_format=cresset.contiguous_format), "CholeskyBackward0")
    return name_node(cresset.linalg_cholesky(input, upper=upper), "CholeskyBackward0")


@function(method=True, out=True, autocast={"cpu": "float32"})
def qr(input, some=True) -> Any:
    """A = Q R: an older form of `linalg.qr`, where `some` is mode "reduced" and otherwise "complete".

    >>> cresset.qr(cresset.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return return_types.qr(cresset.linalg_qr(input, "reduced" if some else "complete"))


@function(method=True, out=True, autocast={"cpu": "float32"})
def svd(input, some=True, compute_uv=True) -> Any:
    """A = U diag(S) Vᴴ: an older form of `linalg.svd` that gives V. Without `compute_uv`, U and V are zeros.

    >>> cresset.svd(cresset.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    if compute_uv:
        U, S, Vh = cresset.linalg_svd(input, full_matrices=not some)
        return return_types.svd((U, S, Vh.mH))
    S = cresset.linalg_svdvals(input)
    m, n = input.shape[-2:]
    return return_types.svd((input.new_zeros(*input.shape[:-2], m, m), S, input.new_zeros(*input.shape[:-2], n, n)))


@function(method=True, autocast={"cpu": "float32"})
def lu(A, pivot=True, get_infos=False) -> Any:
    """A = P L U in compact form: an older form of `linalg.lu_factor` that takes singular matrices, with LAPACK's
    numbers if `get_infos`.

    >>> LU, pivots = cresset.lu(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> LU
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    LU, pivots, info = cresset.linalg_lu_factor_ex(A, pivot=pivot, check_errors=False)
    return (LU, pivots, info) if get_infos else (LU, pivots)


@function(method=True, out=True, autocast={"cpu": "float32"})
def lu_solve(input, LU_data, LU_pivots):
    """The X with A X = `input`, from a compact factorization: an older form of `linalg.lu_solve`.

    >>> cresset.lu_solve(cresset.tensor([[8.0]]), *cresset.lu(cresset.tensor([[2.0]])))
    tensor([[4.]])
    """
    return cresset.linalg_lu_solve(LU_data, LU_pivots, input)


@function(method=True, out=True, autocast={"cpu": "float32"})
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False) -> Any:
    """The X with A X = `input` for triangular A, and a copy of A: an older form of `linalg.solve_triangular`.

    >>> cresset.triangular_solve(cresset.tensor([[8.0]]), cresset.tensor([[2.0]])).solution
    tensor([[4.]])
    """
    of = A.mT if transpose else A
    X = cresset.linalg_solve_triangular(of, input, upper=upper != transpose, unitriangular=unitriangular)
    batch = X.shape[:-2]
    copy = name_node(A.expand(*batch, *A.shape[-2:]).clone(), "TriangularSolveBackward0")
    return return_types.triangular_solve((X, copy))


@function(method=True, out="cast", autocast={"cpu": "float32"})
def orgqr(input, input2):
    """The first columns of the product of Householder's reflectors, whose factors are `input2`: another name of
    `linalg.householder_product`.

    >>> cresset.orgqr(*cresset.geqrf(cresset.tensor([[0.0], [2.0]]))).abs()
    tensor([[0.],
            [1.]])
    """
    return cresset.linalg_householder_product(input, input2)


@function(out=True)
def frobenius_norm(input, dim=(), keepdim=False):
    """The root of the sum of squares, over all elements or over one or two dimensions.

    >>> cresset.frobenius_norm(cresset.tensor([[3.0, 4.0]]), dim=(0, 1))
    tensor(5.)
    """
    dims = [int(dim)] if is_integer(dim) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"frobenius_norm: Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return cresset.linalg.vector_norm(input, 2, dims or None, keepdim)


@function(out=True)
def nuclear_norm(input, dim=(-2, -1), keepdim=False):
    """The sum of the singular values.

    >>> cresset.nuclear_norm(cresset.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return cresset.linalg.matrix_norm(input, "nuc", dim, keepdim)


@function
def svd_lowrank(A, q=6, niter=2, M=None) -> tuple:
    """U, S and V of the `q` largest singular values of A (of A - M), found by random projection (Halko and others,
    2009).

    Args:
        niter: how often the projection is improved.

    >>> [part.shape for part in cresset.svd_lowrank(cresset.ones(5, 3), q=2)]
    [torch.Size([5, 2]), torch.Size([2]), torch.Size([3, 2])]
    """
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    matrix = A if M is None else A - M.expand(A.shape)
    if m < n:
        matrix = matrix.mH
    basis = matrix @ cresset.randn(matrix.size(-1), q, dtype=A.dtype, device=A.device)
    Q = cresset.linalg_qr(basis).Q
    for _ in range(niter):
        Q = cresset.linalg_qr(matrix.mH @ Q).Q
        Q = cresset.linalg_qr(matrix @ Q).Q
    U, S, Vh = cresset.linalg_svd(Q.mH @ matrix, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if m < n else (U, S, V)


@function
def pca_lowrank(A, q=None, center=True, niter=2) -> tuple:
    """Principal components of the rows of A, by `svd_lowrank` of the centered rows: (U, S, V), V's columns the
    directions.

    >>> U, S, V = cresset.pca_lowrank(cresset.tensor([[1.0, 0.0], [3.0, 0.0]]), q=1)
    >>> V.abs()
    tensor([[1.],
            [0.]])
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@function
def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
) -> tuple:  # fmt: skip
    """The `k` largest eigenvalues of symmetric matrices A and their eigenvectors, by products with A: (E, X) with
    A X = B X E. Where a gradient is asked for, the whole decomposition is computed.

    Args:
        A: dense or sparse, of at least 3 n rows.
        B: a positive definite matrix; the identity by default.
        X: vectors to begin with, random ones by default.
        n: how many vectors are iterated; k by default.
        iK: a preconditioner, which multiplies the residuals.
        niter: the most steps; -1 for no limit.
        tol: the size of residuals, relative to that of A, at which it ends.
        largest: False for the smallest ones.
        method: "basic" or "ortho", which are one here: the vectors are orthonormal in each step.

    >>> E, X = cresset.lobpcg(cresset.diag(cresset.tensor([1.0, 5.0, 3.0])), k=1)
    >>> E.round()
    tensor([5.])
    """
    from cresset.linalg import lobpcg as steps

    for name, value in (("tracker", tracker), ("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams),
                        ("ortho_bparams", ortho_bparams)):  # fmt: skip
        if value is not None:
            raise NotImplementedError(f"lobpcg: {name} is about PyTorch's own steps, which are others here")
    k = (1 if X is None else X.size(-1)) if k is None else k
    n = (k if X is None else X.size(-1)) if n is None else n
    steps.check(A, B, X, n, method)
    largest = largest is not False
    if cresset.is_grad_enabled() and any(t is not None and t.requires_grad for t in (A, B)):
        if A.layout != cresset.strided:
            raise ValueError("lobpcg: a sparse A has no gradient here; give it as A.to_dense()")
        return steps.differentiable_eigenpairs((A + A.mH) / 2, None if B is None else (B + B.mH) / 2, k, largest)
    tol = steps.DEFAULT_TOLERANCE[A.dtype.to_real()] if tol is None else tol
    niter = steps.STEPS if niter is None else sys.maxsize if niter < 0 else niter
    with cresset.no_grad():
        E, X = steps.eigenpairs(A, B, X, n, iK, niter, tol, largest)
    return E[..., :k], X[..., :k]


def _removed(name, instead):
    def gone(*args, **kwargs):
        raise RuntimeError(
            f"{name}: This function was deprecated since version 1.9 and is now removed. "
            f"Use `torch.linalg.{instead}` instead"
        )

    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = f"Removed from PyTorch; `linalg.{instead}` replaced it. Calling it raises."
    return function(gone, method=name != "matrix_rank")


for _name, _instead in {
    "eig": "eig",
    "symeig": "eigh",
    "solve": "solve",
    "lstsq": "lstsq",
    "matrix_rank": "matrix_rank",
}.items():
    _removed(_name, _instead)
