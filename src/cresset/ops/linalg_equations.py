"""Equations with matrices, inverses, determinants and least squares, native, with their derivatives. `torch.linalg`
offers them by PyTorch's names.

In the derivatives, gX is the gradient of X and Xᴴ the conjugate transpose.
"""

import cresset

from .batches import all_samples
from .linalg_factors import all_full, permutation, triangular, unit_lower
from .registry import operator

_ON_CUDA = {"cuda": "cresset.linalg.on_cuda"}

check_errors = operator(
    "_linalg_check_errors",
    """Raise LinAlgError for the first matrix whose number in `info` is not
    zero, in the words of `api_name`.

    >>> cresset._linalg_check_errors(cresset.zeros(2, dtype=cresset.int32), "linalg.inv", is_matrix=False)
    """,
)


@check_errors.batch
def _(call):
    call.run(call.args[0], call.args[1], False)


def _multiples(number, n):
    """The identity matrix of n rows times a number, also an infinite one."""
    return number.unsqueeze(-1).expand(*number.shape, n).diag_embed()


def _side_by_side(call, a, b):
    """The matrices of a batch and of another, which are broadcast: with the dimension of the samples in front."""
    rank = max(call.rank(a), call.rank(b))
    return call.padded(a, rank), call.padded(b, rank)


# ---------------------------------------------------------------- A X = B

solve_ex = operator("_linalg_solve_ex", """`linalg.solve_ex` with the factors of A.

    >>> cresset._linalg_solve_ex(cresset.tensor([[2.0]]), cresset.tensor([[8.0]]))[0]
    tensor([[4.]])
    """, autocast={"cpu": "float32"}, in_python=_ON_CUDA)  # fmt: skip

operator("linalg_solve", """The X with A X = B (X A = B unless `left`), for square A. B may be a vector.

    >>> cresset.linalg.solve(cresset.tensor([[2.0, 0.0], [0.0, 4.0]]), cresset.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """, autocast={"cpu": "float32"})  # fmt: skip

operator("linalg_solve_ex", """`solve` that reports a singular matrix in `info`: 0 is fine, k says that element k of U
    in A = P L U is zero.

    >>> cresset.linalg.solve_ex(cresset.eye(2), cresset.tensor([1.0, 2.0])).result
    tensor([1., 2.])
    """, autocast={"cpu": "float32"})  # fmt: skip


def are_vectors(A, B):
    """Whether B is a vector for each A: it has the shape of A without its last dimension."""
    return len(B.shape) == 1 or (len(A.shape) - 1 == len(B.shape) and tuple(B.shape) == tuple(A.shape[:-1]))


@solve_ex.derivative
def _(grad, A, B_info, result, LU, pivots, left):
    """gB = A⁻ᴴ gX and gA = -gB Xᴴ, or gB = gX A⁻ᴴ and gA = -Xᴴ gB."""
    of_vectors = are_vectors(A, B_info)
    X, incoming = (result.unsqueeze(-1), grad.unsqueeze(-1)) if of_vectors else (result, grad)
    if cresset.is_grad_enabled():
        gB = cresset._linalg_solve_ex(A.mH, incoming, left=left)[0]
    else:
        gB = cresset.linalg_lu_solve(LU, pivots, incoming, left=left, adjoint=True)
    yield lambda: -(gB @ X.mH) if left else -(X.mH @ gB)
    yield lambda: gB.squeeze(-1) if of_vectors else gB


@solve_ex.batch
def _(call):
    from ..func.batching import Unbatched  # upward: what the rules of vmap are made of

    of_vectors = are_vectors(*call.given[:2])
    if of_vectors:
        A, B = call.full(0), call.front(1).unsqueeze(-1)
    else:
        A, B = _side_by_side(call, 0, 1)
    X, *factors = call.run(A, B, *call.args[2:])
    if of_vectors:
        X = X.squeeze(-1)
    return X, *(factors if of_vectors or call.dims[0] is not None else map(Unbatched, factors))


inv_ex = operator("linalg_inv_ex", """`inv` that reports a singular matrix in `info`: 0 is fine, k says that element
    k of U in A = P L U is zero.

    >>> cresset.linalg.inv_ex(cresset.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """, autocast={"cpu": "float32"}, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator("linalg_inv", """The inverse: the X with A X = I. To solve equations, `solve` is faster and more exact.

    >>> cresset.linalg.inv(cresset.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """, autocast={"cpu": "float32"})  # fmt: skip


@inv_ex.derivative
def _(grad, inverse):
    """gA = -Xᴴ gX Xᴴ."""
    yield lambda: -(inverse.mH @ grad @ inverse.mH)


lu_solve = operator("linalg_lu_solve", """The X with A X = B, from `lu_factor(A)` (X A = B unless `left`; with Aᴴ
    for A if `adjoint`).

    >>> A = cresset.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cresset.linalg.lu_solve(*cresset.linalg.lu_factor(A), cresset.tensor([[2.0], [8.0]]))
    tensor([[1.],
            [2.]])
    """, in_python=_ON_CUDA)  # fmt: skip


@lu_solve.derivative
def _(grad, LU, pivots, B_info, output, left, adjoint):
    """gB as of `solve`, and gA = -gB Xᴴ (adjoint: -X gBᴴ; X A = B: -Xᴴ gB, adjoint -gBᴴ X), of which A = P L U gives
    gL = tril(Pᵀ gA Uᴴ, -1) and gU = triu(Lᴴ Pᵀ gA).
    """
    gB = cresset.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)

    def of_factors():
        X = output
        if left:
            gA = -(X @ gB.mH) if adjoint else -(gB @ X.mH)
        else:
            gA = -(gB.mH @ X) if adjoint else -(X.mH @ gB)
        n = LU.size(-1)
        there = permutation(pivots, n, LU.dtype).mT @ gA
        return (there @ LU.triu().mH).tril(-1) + (unit_lower(LU, n).mH @ there).triu()

    yield of_factors
    yield None
    yield lambda: gB


def _factors_beside(call):
    """A factor, its pivots and a right-hand side, of which the first two have one batch."""
    rank = max(call.rank(0), call.rank(2))
    if call.dims[0] is None and call.dims[1] is None:
        return call.args[0], call.args[1], call.padded(2, rank)
    factor, pivots = call.full(0), call.full(1)
    missing = rank - call.rank(0)
    factor = factor.reshape(len(factor), *(1,) * missing, *factor.shape[1:])
    pivots = pivots.reshape(len(pivots), *(1,) * missing, *pivots.shape[1:])
    return factor, pivots, call.padded(2, rank)


@lu_solve.batch
def _(call):
    return call.run(*_factors_beside(call), *call.args[3:])


ldl_solve = operator("linalg_ldl_solve", """The X with A X = B, from `ldl_factor(A)`.

    >>> A = cresset.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cresset.linalg.ldl_solve(*cresset.linalg.ldl_factor(A), cresset.tensor([[2.0], [8.0]]))
    tensor([[1.],
            [2.]])
    """, in_python=_ON_CUDA)  # fmt: skip


@ldl_solve.derivative
def _(grad):
    raise NotImplementedError("the derivative for 'linalg_ldl_solve' is not implemented.")


@ldl_solve.batch
def _(call):
    return call.run(*_factors_beside(call), *call.args[3:])


# ---------------------------------------------------------------- triangles

solve_triangular = operator("linalg_solve_triangular", """The X with A X = B (X A = B unless `left`) for a triangular A;
    its other triangle is not read.

    Args:
        upper: A is an upper triangle; else a lower one.
        unitriangular: A's diagonal is taken to be ones.

    >>> A = cresset.tensor([[1.0, 1.0], [0.0, 2.0]])
    >>> cresset.linalg.solve_triangular(A, cresset.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [2.]])
    """, in_python=_ON_CUDA)  # fmt: skip


@solve_triangular.derivative
def _(grad, A, output, upper, left, unitriangular):
    """A X = B: gB = A⁻ᴴ gX, gA = the triangle of -gB Xᴴ. X A = B: gB = gX A⁻ᴴ, gA = the triangle of -Xᴴ gB."""
    gB = triangular(A.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)

    def of_triangle():
        gA = -(gB @ output.mH) if left else -(output.mH @ gB)
        first = int(unitriangular)  # a diagonal of ones is not read
        return gA.triu(first) if upper else gA.tril(-first)

    yield of_triangle
    yield lambda: gB


@solve_triangular.batch
def _(call):
    return call.run(*_side_by_side(call, 0, 1), *call.args[2:])


cholesky_solve = operator("cholesky_solve", """The X with L Lᴴ X = B, for B = `input` and L = `input2` (`upper`: Lᴴ
    L X = B).

    >>> cresset.cholesky_solve(cresset.tensor([[8.0]]), cresset.tensor([[2.0]]))
    tensor([[2.]])
    """, autocast={"cpu": "float32"}, casts_out=True, in_python=_ON_CUDA)  # fmt: skip


def _of_factor(gA, L, upper):
    """gL = (gA + gAᴴ) L, or L (gA + gAᴴ) if `upper`. As in PyTorch, it fills the triangle of L that is not read too."""
    gA = gA + gA.mH
    return L.triu() @ gA if upper else gA @ L.tril()


@cholesky_solve.derivative
def _(grad, input2, output, upper):
    """gB = A⁻¹ gX and gA = -gB Xᴴ."""
    gB = cresset.cholesky_solve(grad, input2, upper)
    yield lambda: gB
    yield lambda: _of_factor(-(gB @ output.mH), input2, upper)


@cholesky_solve.batch
def _(call):
    return call.run(*_side_by_side(call, 0, 1), call.args[2])


cholesky_inverse = operator("cholesky_inverse", """The inverse of L Lᴴ, for L = `input` (`upper`: of Lᴴ L).

    >>> cresset.cholesky_inverse(cresset.tensor([[2.0]]))
    tensor([[0.2500]])
    """, autocast={"cpu": "float32"}, batch="leading", casts_out=True, in_python=_ON_CUDA)  # fmt: skip


@cholesky_inverse.derivative
def _(grad, input, output, upper):
    """gA = -X gX Xᴴ."""
    yield lambda: _of_factor(-(output @ grad @ output.mH), input, upper)


# ---------------------------------------------------------------- determinants

det = operator("_linalg_det", """`linalg.det` with the factors of A.

    >>> cresset._linalg_det(cresset.tensor([[2.0]]))[0]
    tensor(2.)
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator(
    "linalg_det",
    """The determinant.

    >>> cresset.linalg.det(cresset.tensor([[1.0, 2.0], [0.0, 3.0]]))
    tensor(3.)
    """,
)


def sign_of(pivots):
    """1 or -1 for an even or odd number of row exchanges."""
    places = cresset.arange(1, pivots.size(-1) + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


def _products_of_others(values):
    """For each element the product of all others, without a division."""
    n = values.size(-1)
    ones = cresset.eye(n, dtype=cresset.bool, device=values.device)
    return values.unsqueeze(-2).expand(*values.shape, n).masked_fill(ones, 1).prod(-1)


@det.derivative
def _(grad, A, result, LU, pivots):
    """gA = g conj(det) A⁻ᴴ: the conjugate of the cofactors, which a singular matrix has as well.

    To be differentiated again they are taken from the singular values, U diag(the products of all others) Vᴴ; otherwise
    from A = P L U, where a zero on the diagonal of U gives way to a tiny number.
    """

    def back():
        if not A.numel():
            return cresset.zeros_like(A)
        if not cresset.is_grad_enabled():
            diagonal = LU.diagonal(0, -2, -1)
            fixed = diagonal.masked_fill(diagonal == 0, cresset.finfo(A.dtype).eps)
            value = fixed.prod(-1) * sign_of(pivots).to(A.dtype)
            factors = LU + (fixed - diagonal).diag_embed()
            return cresset.linalg_lu_solve(factors, pivots, _multiples(grad * value.conj(), A.size(-1)), adjoint=True)
        tiny = 100 * cresset.finfo(A.dtype).eps
        if not _has_no_values(result) and bool((all_samples(result.detach()).abs() < tiny).any()):
            U, S, Vh = cresset.linalg_svd(A, full_matrices=False)
            factor = (cresset.linalg_det(U) * cresset.linalg_det(Vh)).conj() * grad
            return (U * (_products_of_others(S).to(A.dtype) * factor.unsqueeze(-1)).unsqueeze(-2)) @ Vh
        return cresset._linalg_solve_ex(A.mH, _multiples(grad * result.conj(), A.size(-1)))[0]

    yield back


def _has_no_values(tensor):
    """Whether a tensor has a shape and no values: of the meta device, or fake."""
    return tensor.is_meta or getattr(tensor, "is_fake", False) is True


slogdet = operator("_linalg_slogdet", """`linalg.slogdet` with the factors of A.

    >>> cresset._linalg_slogdet(cresset.tensor([[1.0]]))[1]
    tensor(0.)
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator(
    "linalg_slogdet",
    """The determinant's sign (a number of size 1, or 0) and the logarithm of its absolute value.

    >>> sign, logabsdet = cresset.linalg.slogdet(cresset.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.))
    """,
)


@slogdet.derivative
def _(grads, arrived, A, sign, LU, pivots):
    """gA = c A⁻ᴴ with c = g_log, and for complex A the imaginary part -Im(conj(g_sign) sign): d log det is
    tr(A⁻¹ dA).
    """

    def back():
        if not A.is_complex() and not arrived[1]:  # the sign of a real determinant does not change
            return cresset.zeros_like(A)
        factor = grads[1]
        if A.is_complex():
            factor = cresset.complex(grads[1], -(grads[0].conj() * sign).imag)
        if A.numel() and not cresset.is_grad_enabled():
            return cresset.linalg_lu_solve(LU, pivots, _multiples(factor, A.size(-1)), adjoint=True)
        return cresset._linalg_solve_ex(A.mH, _multiples(factor, A.size(-1)))[0]

    yield back


# ---------------------------------------------------------------- least squares

least_squares = operator("_linalg_lstsq", """The X that makes ‖A X - B‖ least by LAPACK's `driver`, with what
    `linalg.lstsq` gives beside it; A and B have one batch.

    >>> A, B = cresset.eye(1), cresset.tensor([[3.0]])
    >>> cresset._linalg_lstsq(A, B, 1e-7, "gels")[0]
    tensor([[3.]])
    """, in_python=_ON_CUDA)  # fmt: skip


@least_squares.derivative
def _(grads, arrived, A, B, solution, residuals):
    """X = A⁺ B: gB = A⁺ᴴ gX, and gA comes through A⁺ with gP = gX Bᴴ.

    Residuals ‖A X - B‖² depend on X only in second order, so they add D Xᴴ to gA and take D from gB, D = 2 (A X - B) g.
    """
    X, gX = solution, grads[0]
    P = cresset.linalg.pinv(A)
    has_residuals = arrived[1] and residuals.shape == (*X.shape[:-2], X.size(-1))
    difference = 2 * (A @ X - B) * grads[1].unsqueeze(-2) if has_residuals else None

    def of_A():
        gA = gradient_through_pseudo_inverse(gX @ B.mH, A, P)
        return gA if difference is None else gA + difference @ X.mH

    yield of_A
    yield lambda: P.mH @ gX if difference is None else P.mH @ gX - difference


def gradient_through_pseudo_inverse(grad, A, P):
    """gA = -Pᴴ gP Pᴴ + (I - A P) gPᴴ P Pᴴ + Pᴴ P gPᴴ (I - P A)   (Golub and Pereyra)."""
    first = grad.mH @ P @ P.mH
    second = P.mH @ P @ grad.mH
    return -(P.mH @ grad @ P.mH) + (first - A @ (P @ first)) + (second - (second @ P) @ A)


@least_squares.batch
def _(call):
    from ..func.batching import Unbatched  # upward: what the rules of vmap are made of

    X, residuals, rank, values = all_full(call, 0, 1)
    driver = call.args[3]
    return (
        X,
        residuals if residuals.ndim > 1 else Unbatched(residuals),
        Unbatched(rank) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else Unbatched(values),
    )
