"""Equations with a triangular matrix, or with the product of one and its conjugate transpose."""

import cresset

from ..autograd.function import BatchFunction
from . import lapack
from .calling import with_out
from .checking import check_matrix, check_same_dtype, check_square


class SolveTriangular(BatchFunction):
    """A X = B, or X A = B."""

    _node_name = "LinalgSolveTriangularBackward0"

    @staticmethod
    def forward(ctx, A, B, upper, left, unitriangular):
        X = lapack.trsm(A, B, upper, left, unitriangular)
        ctx.options = upper, left, unitriangular
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, grad):
        """A X = B: gB = A⁻ᴴ gX, gA = the triangle of -gB Xᴴ. X A = B: gB = gX A⁻ᴴ, gA = the triangle of -Xᴴ gB."""
        A, X = ctx.saved_tensors
        upper, left, unitriangular = ctx.options
        gB = solve_triangular(A.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
        gA = None
        if ctx.needs_input_grad[0]:
            gA = -(gB @ X.mH) if left else -(X.mH @ gB)
            first = int(unitriangular)  # a diagonal of ones is not read
            gA = gA.triu(first) if upper else gA.tril(-first)
        return gA, gB, None, None, None


@with_out
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """The X with A X = B (X A = B unless `left`) for a triangular A; its other triangle is not read.

    Args:
        upper: A is an upper triangle; else a lower one.
        unitriangular: A's diagonal is taken to be ones.

    >>> A = cresset.tensor([[1.0, 1.0], [0.0, 2.0]])
    >>> cresset.linalg.solve_triangular(A, cresset.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    who = "linalg.solve_triangular"
    check_square(who, A)
    check_matrix(who, B, "B")
    check_same_dtype(who, A, B)
    A, B = broadcast_batches(who, A, B, left)
    return SolveTriangular.apply(A, B, upper, left, unitriangular)


def broadcast_batches(who, A, B, left=True):
    """A and B with the same batch, checked to have sizes with which A X = B (or X A = B) makes sense."""
    if A.size(-1) != B.size(-2 if left else -1):
        raise RuntimeError(
            f"{who}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.size(-2)}x{A.size(-1)} and {B.size(-2)}x{B.size(-1)})"
        )
    batch = cresset.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])


class CholeskySolve(BatchFunction):
    """A X = B with A = L Lᴴ, or A = Lᴴ L if `upper`."""

    _node_name = "CholeskySolveBackward0"

    @staticmethod
    def forward(ctx, L, B, upper):
        ctx.upper = upper
        X = lapack.potrs(L, B, upper)
        ctx.save_for_backward(L, X)
        return X

    @staticmethod
    def backward(ctx, grad):
        """gB = A⁻¹ gX and gA = -gB Xᴴ, from which gL = (gA + gAᴴ) L, or L (gA + gAᴴ) if `upper`.

        As in PyTorch, the gradient fills the triangle of L that is not read too.
        """
        L, X = ctx.saved_tensors
        gB = CholeskySolve.apply(L, grad, ctx.upper)
        gL = None
        if ctx.needs_input_grad[0]:
            gA = -(gB @ X.mH)
            gA = gA + gA.mH
            gL = L.triu() @ gA if ctx.upper else gA @ L.tril()
        return gL, gB, None


class CholeskyInverse(CholeskySolve):
    """CholeskySolve with the identity for B."""

    _node_name = "CholeskyInverseBackward0"


def cholesky_solve(B, L, upper, who="cholesky_solve", function=CholeskySolve):
    """The X with L Lᴴ X = B (`upper`: Lᴴ L X = B); `torch.cholesky_solve` is this."""
    check_square(who, L, "L")
    check_matrix(who, B, "B")
    check_same_dtype(who, B, L, ("B", "L"))
    L, B = broadcast_batches(who, L, B)
    return function.apply(L, B, upper)
