"""Eigenvalues and singular values, and the vectors that belong to them, native, with their derivatives. `torch.linalg`
offers them by PyTorch's names.

In the derivatives, gX is the gradient of X and E the table of differences of the values. Vectors have a free sign
(complex ones: phase), so a loss that depends on it has no derivative.
"""

import cresset

from .registry import operator

_ON_CUDA = {"cuda": "cresset.linalg.on_cuda"}


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


def _arrived(grads, arrived):
    """The gradients, None where there is none."""
    return [grad if is_there else None for grad, is_there in zip(grads, arrived, strict=True)]


def _with_placeholder(call, *places):
    """Inside vmap: results that are empty where vectors are not asked for are the same for all samples."""
    results = call.run(call.front(), *call.args[1:])
    from ..func.batching import Unbatched  # upward: what the rules of vmap are made of

    return [Unbatched(r) if i in places else r for i, r in enumerate(results)]


# ---------------------------------------------------------------- A = U diag(S) Vᴴ

svd = operator("_linalg_svd", """`linalg.svd`, without U and Vh unless `compute_uv`.

    >>> cresset._linalg_svd(cresset.tensor([[2.0]]))[1]
    tensor([2.])
    """, autocast={"cpu": "float32"}, in_python=_ON_CUDA)  # fmt: skip

operator("linalg_svd", """A = U diag(S) Vh with orthonormal columns in U and rows in Vh; S falls and is not negative.

    Args:
        full_matrices: U and Vh are square; else they have min(m, n) columns and rows.
        driver: on CUDA, cuSOLVER's routine: "gesvdj" (rotations), "gesvd" (QR); by default the first, and the second
            where it does not converge. "gesvda" stands for the default.

    >>> cresset.linalg.svd(cresset.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """, autocast={"cpu": "float32"})  # fmt: skip

operator("linalg_svdvals", """The singular values, in falling order.

    >>> cresset.linalg.svdvals(cresset.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """, autocast={"cpu": "float32"})  # fmt: skip


@svd.derivative
def _(grads, arrived, U, S, Vh):
    """gA = U X Vᴴ + (I - U Uᴴ) gU S⁻¹ Vᴴ + U S⁻¹ gVᴴ (I - V Vᴴ), with

    X = (skew(Uᴴ gU) S + S skew(Vᴴ gV)) / E + diag(gS), E of the squares of S, skew(M) = M - Mᴴ, and for complex A also
    the diagonal of skew(Uᴴ gU) / 2S. The second and third terms are zero unless A is tall and wide, respectively.
    """

    def back():
        gU, gS, gVh = _arrived(grads, arrived)
        k, m, n = S.size(-1), U.size(-2), Vh.size(-1)
        left, right = U[..., :k], Vh[..., :k, :]
        gU = None if gU is None else gU[..., :k]
        gVh = None if gVh is None else gVh[..., :k, :]
        inner = None if gS is None else gS.diag_embed().to(U.dtype)
        around = None
        if gU is not None:
            turn_U = left.mH @ gU
            turn_U = turn_U - turn_U.mH
            around = turn_U * S.unsqueeze(-2)
        if gVh is not None:
            turn_V = right @ gVh.mH
            turn_V = turn_V - turn_V.mH
            other = S.unsqueeze(-1) * turn_V
            around = other if around is None else around + other
        if around is not None:
            around = _without_diagonal(around) / _differences(S * S)
            if U.is_complex() and gU is not None and gVh is not None:
                _check_phase("svd", gU, turn_U, -turn_V.diagonal(0, -2, -1).imag)
                around = around + (turn_U.diagonal(0, -2, -1) / (2 * S)).diag_embed()
            inner = around if inner is None else inner + around
        outer = left @ inner
        if m > k and gU is not None:
            scaled = gU / S.unsqueeze(-2)
            outer = outer + scaled - left @ (left.mH @ scaled)
        result = outer @ right
        if n > k and gVh is not None:
            scaled = gVh / S.unsqueeze(-1)
            result = result + left @ (scaled - (scaled @ right.mH) @ right)
        return result

    yield back


@svd.batch
def _(call):
    return _with_placeholder(call, *(() if call.args[2] else (0, 2)))


# ---------------------------------------------------------------- A = V diag(L) Vᴴ

eigh = operator("_linalg_eigh", """`linalg.eigh`, without the vectors unless `compute_v`.

    >>> cresset._linalg_eigh(cresset.tensor([[2.0]]))[0]
    tensor([2.])
    """, autocast={"cpu": "float32"}, in_python=_ON_CUDA)  # fmt: skip

operator("linalg_eigh", """A = V diag(L) Vᴴ for a symmetric (Hermitian) A, of which one triangle is read; L rises.

    >>> cresset.linalg.eigh(cresset.tensor([[3.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 3.])
    """, autocast={"cpu": "float32"})  # fmt: skip

operator("linalg_eigvalsh", """The eigenvalues of a symmetric (Hermitian) matrix, of which one triangle is read, in
    rising order.

    >>> cresset.linalg.eigvalsh(cresset.tensor([[3.0, 0.0], [0.0, 1.0]]))
    tensor([1., 3.])
    """, autocast={"cpu": "float32"})  # fmt: skip


@eigh.derivative
def _(grads, arrived, eigenvalues, eigenvectors):
    """gA = V (diag(gL) + (Vᴴ gV) / E) Vᴴ."""
    L, V = eigenvalues, eigenvectors

    def back():
        gL, gV = _arrived(grads, arrived)
        if gV is None:
            return (V * gL.unsqueeze(-2)) @ V.mH
        turn = V.mH @ gV
        _check_phase("linalg_eigh", gV, turn)
        inner = _without_diagonal(turn) / _differences(L)
        if gL is not None:
            inner = inner + gL.diag_embed()
        return V @ inner @ V.mH

    yield back


@eigh.batch
def _(call):
    return _with_placeholder(call, *(() if call.args[2] else (1,)))


# ---------------------------------------------------------------- A V = V diag(L)

eig = operator("_linalg_eig", """`linalg.eig`, without the vectors unless `compute_v`.

    >>> cresset._linalg_eig(cresset.tensor([[2.0]]))[0]
    tensor([2.+0.j])
    """, autocast={"cpu": "float32"}, casts_out=True, in_python=_ON_CUDA)  # fmt: skip

operator("linalg_eig", """A V = V diag(L) for any square A that has enough eigenvectors; L and V are complex, in no
    order.

    >>> cresset.linalg.eig(cresset.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.imag
    tensor([ 1., -1.])
    """, autocast={"cpu": "float32"}, casts_out=True)  # fmt: skip

operator("linalg_eigvals", """The eigenvalues of any square matrix, complex, in no order.

    >>> cresset.linalg.eigvals(cresset.tensor([[0.0, -1.0], [1.0, 0.0]])).imag
    tensor([ 1., -1.])
    """, autocast={"cpu": "float32"}, casts_out=True)  # fmt: skip


@eig.derivative
def _(grads, arrived, A_info, eigenvalues, eigenvectors):
    """gA = V⁻ᴴ (diag(gL) + (Vᴴ gV - Vᴴ V diag(Re(Vᴴ gV))) / conj(E)) Vᴴ, of which a real A takes the real part."""
    L, V = eigenvalues, eigenvectors

    def back():
        gL, gV = _arrived(grads, arrived)
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
        gA = cresset.linalg_solve(V.mH, inner @ V.mH)
        return gA if A_info.dtype.is_complex else gA.real

    yield back


@eig.batch
def _(call):
    return _with_placeholder(call, *(() if call.args[1] else (1,)))
