"""Matrices as products of simpler ones: Cholesky's, LU, LDL and QR, native, with their derivatives. `torch.linalg`
offers them by PyTorch's names.

In the derivatives, gX is the gradient of X, Xᴴ the conjugate transpose, and tril and triu keep one triangle.
"""

import cresset

from .registry import operator

_ON_CUDA = {"cuda": "cresset.linalg.on_cuda"}


def triangular(A, B, upper, left=True, unitriangular=False):
    """`linalg.solve_triangular`."""
    return cresset.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def all_full(call, *places):
    """Inside vmap: tensors that have one batch, the new dimension in front of it."""
    args = list(call.args)
    for i in places:
        args[i] = call.full(i)
    return call.run(*args)


# ---------------------------------------------------------------- A = L Lᴴ

cholesky_ex = operator("linalg_cholesky_ex", """`cholesky` that reports failure in `info` (0: fine; k: the leading minor
    of order k is not positive-definite).

    >>> cresset.linalg.cholesky_ex(cresset.tensor([[4.0, 2.0], [2.0, 2.0]])).L
    tensor([[2., 0.],
            [1., 1.]])
    """, autocast={"cpu": "float32"}, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator("linalg_cholesky", """The lower triangular L with A = L Lᴴ, for a Hermitian positive-definite A (`upper`: Lᴴ).
    One triangle of A is read.

    >>> cresset.linalg.cholesky(cresset.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """, autocast={"cpu": "float32"})  # fmt: skip


@cholesky_ex.derivative
def _(grad, L, upper):
    """gA = L⁻ᴴ sym(tril(Lᴴ gL)) L⁻¹ / 2, where sym mirrors the triangle."""

    def back():
        factor, incoming = (L.mH, grad.mH) if upper else (L, grad)
        product = factor.mH @ incoming
        mirrored = product.tril() + product.tril(-1).mH
        half = triangular(factor.mH, mirrored, upper=True)
        return triangular(factor, half, upper=False, left=False) / 2

    yield back


# ---------------------------------------------------------------- A = P L U

lu_factor_ex = operator("linalg_lu_factor_ex", """`lu_factor` that reports a zero on the diagonal of U in `info` (0:
    none; k: element k, counted from 1).

    >>> cresset.linalg.lu_factor_ex(cresset.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator(
    "linalg_lu_factor",
    """A = P L U in LAPACK's form: L and U in one matrix, and the row exchanges (rows counted
    from 1). See `lu_solve`.

    >>> LU, pivots = cresset.linalg.lu_factor(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> pivots
    tensor([2, 2], dtype=torch.int32)
    """,
)

lu = operator("linalg_lu", """A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    Args:
        pivot: exchange rows, so that no small number divides. Without, P is empty; on CUDA only.

    >>> P, L, U = cresset.linalg.lu(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> U
    tensor([[2., 2.],
            [0., 1.]])
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip

lu_unpack = operator("lu_unpack", """P, L and U of a compact factorization; what is not asked for is an empty tensor.

    >>> cresset.lu_unpack(*cresset.lu(cresset.tensor([[1.0, 2.0], [2.0, 2.0]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """, in_python=_ON_CUDA)  # fmt: skip

row_order = operator("_linalg_row_order", """Which of `rows` rows stands where after the exchanges of row i and row
    pivots[i], counted from 1.

    >>> cresset._linalg_row_order(cresset.tensor([2, 2], dtype=cresset.int32), 2)
    tensor([1, 0])
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip


def permutation(pivots, m, dtype):
    """The matrix P of the row exchanges `pivots`: exchange i is of rows i and pivots[i], from 1."""
    order = cresset._linalg_row_order(pivots, m)
    return (order.unsqueeze(-2) == cresset.arange(m, device=order.device).unsqueeze(-1)).to(dtype)


def unit_lower(LU, k):
    """The L of a compact factorization: the first k columns below ones."""
    return LU[..., :, :k].tril(-1) + cresset.eye(LU.size(-2), k, dtype=LU.dtype, device=LU.device)


def _through_factors(LU, P, grad):
    """Square A: gA = P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ.

    If A is wide, the part right of the square, U₂ = L⁻¹ Pᵀ A₂, gives gA₂ = P L⁻ᴴ gU₂ and takes gU₂ U₂ᴴ from Lᴴ gL. If
    it is tall, the part below, L₂ = A₂ U⁻¹, gives gA₂ = gL₂ U⁻ᴴ and takes L₂ᴴ gL₂ from gU Uᴴ.
    """
    m, n = LU.shape[-2:]
    k = min(m, n)
    square, grad_square = LU[..., :k, :k], grad[..., :k, :k]
    L, U = unit_lower(square, k), square.triu()
    from_L, from_U = L.mH @ grad_square.tril(-1), grad_square.triu() @ U.mH
    if n > m:
        from_L = from_L - grad[..., :, k:] @ LU[..., :, k:].mH
    elif m > n:
        from_U = from_U - LU[..., k:, :].mH @ grad[..., k:, :]
    inner = from_L.tril(-1) + from_U.triu()
    inner = triangular(U.mH, inner, upper=False, left=False)
    if n > m:
        inner = cresset.cat([inner, grad[..., :, k:]], -1)
    result = triangular(L.mH, inner, upper=True, unitriangular=True)
    if m > n:
        below = triangular(U.mH, grad[..., k:, :], upper=False, left=False)
        result = cresset.cat([result, below], -2)
    return P @ result


@lu_factor_ex.derivative
def _(grad, LU, pivots):
    yield lambda: _through_factors(LU, permutation(pivots, LU.size(-2), LU.dtype), grad)


def _together(L, U, k):
    """Two triangles in one matrix, of which L has no diagonal."""
    m, n = L.size(-2), U.size(-1)
    L, U = L.tril(-1), U.triu()
    if n > k:
        L = cresset.cat([L, L.new_zeros((*L.shape[:-1], n - k))], -1)
    if m > k:
        U = cresset.cat([U, U.new_zeros((*U.shape[:-2], m - k, n))], -2)
    return L + U


@lu.derivative
def _(grads, P, L, U, pivot):
    k = L.size(-1)

    def back():
        order = P if pivot else cresset.eye(L.size(-2), dtype=L.dtype, device=L.device)
        return _through_factors(_together(L, U, k), order, _together(grads[1], grads[2], k))

    yield back


@lu_unpack.derivative
def _(grads, LU_data_info, unpack_data):
    if unpack_data:
        yield lambda: _together(grads[1], grads[2], min(LU_data_info.shape[-2:]))


@lu_unpack.batch
def _(call):
    P, L, U = all_full(call, 0, 1)
    unbatched = _unbatched()
    return (P if call.args[3] else unbatched(P)), *((L, U) if call.args[2] else (unbatched(L), unbatched(U)))


def _unbatched():
    from ..func.batching import Unbatched  # upward: what the rules of vmap are made of

    return Unbatched


# ---------------------------------------------------------------- A = L D Lᵀ

ldl_factor_ex = operator("linalg_ldl_factor_ex", """`ldl_factor` that reports a zero in D in `info` (0: none; k:
    element k, counted from 1).

    >>> cresset.linalg.ldl_factor_ex(cresset.eye(2)).info
    tensor(0, dtype=torch.int32)
    """, batch="leading", in_python=_ON_CUDA)  # fmt: skip

operator(
    "linalg_ldl_factor",
    """A = L D Lᵀ (`hermitian`: L D Lᴴ) for symmetric A, in LAPACK's form, for
    `ldl_solve`. The lower triangle of A is read.

    >>> cresset.linalg.ldl_factor(cresset.tensor([[2.0, 0.0], [0.0, 3.0]])).LD
    tensor([[2., 0.],
            [0., 3.]])
    """,
)


def _refuse(name):
    def refuse(grad):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


ldl_factor_ex.derivative(_refuse("linalg_ldl_factor_ex"))


# ---------------------------------------------------------------- A = Q R

geqrf = operator("geqrf", """Householder's form of A = Q R, for `linalg.householder_product` and `ormqr`: R above the
    reflectors, and their factors.

    >>> cresset.geqrf(cresset.tensor([[3.0], [4.0]])).a[0].abs()
    tensor([5.])
    """, autocast={"cpu": "float32"}, batch="leading", in_python=_ON_CUDA)  # fmt: skip
geqrf.derivative(_refuse("geqrf"))

qr = operator("linalg_qr", """A = Q R with orthonormal columns in Q and an upper triangle R.

    Args:
        mode: "reduced" (Q is m × min(m, n)), "complete" (Q is m × m), "r" (only R; Q is empty).

    >>> Q, R = cresset.linalg.qr(cresset.tensor([[0.0, 1.0], [2.0, 3.0]]))
    >>> R.abs()
    tensor([[2., 3.],
            [0., 1.]])
    """, autocast={"cpu": "float32"}, in_python=_ON_CUDA)  # fmt: skip


@qr.derivative
def _(grads, arrived, Q, R, mode):
    """Not wide: gA = (gQ + Q sym(triu(gR Rᴴ - Qᴴ gQ))) R⁻ᴴ, where sym mirrors the triangle.

    If A is wide, the part right of the square, R₂ = Qᴴ A₂, gives gA₂ = Q gR₂ and adds A₂ gR₂ᴴ to gQ, where A₂ = Q R₂.
    """
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
            "Please use linalg.qr(A, mode='reduced') if you are going to require gradients"
        )
    m, n = Q.size(-2), R.size(-1)
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols, "
            f"got {m} by {n} matrices"
        )

    def back():
        (gQ, gR), has_R = grads, arrived[1]
        k, square, gR2 = R.size(-2), R, None
        if n > m:
            if has_R:
                gR2 = gR[..., :, k:]
                gQ = gQ + Q @ R[..., :, k:] @ gR2.mH
                gR = gR[..., :, :k]
            square = R[..., :, :k]
        inner = gR @ square.mH - Q.mH @ gQ if has_R else -(Q.mH @ gQ)
        inner = inner.triu()
        mirrored = inner + inner.triu(1).mH
        if mirrored.is_complex():
            mirrored = mirrored - mirrored.diagonal(0, -2, -1).imag.mul(1j).diag_embed()
        gA = triangular(square.mH, gQ + Q @ mirrored, upper=False, left=False)
        if n > m:
            right = Q.new_zeros((*Q.shape[:-1], n - m)) if gR2 is None else Q @ gR2
            gA = cresset.cat([gA, right], -1)
        return gA

    yield back


@qr.batch
def _(call):
    Q, R = call.run(call.front(), call.args[1])
    return (_unbatched()(Q) if call.args[1] == "r" else Q), R


# ---------------------------------------------------------------- products of reflectors

householder_product = operator("linalg_householder_product", """The first columns of the product of Householder's
    reflectors, which `torch.geqrf` gives.

    >>> a, tau = cresset.geqrf(cresset.tensor([[0.0], [2.0]]))
    >>> cresset.linalg.householder_product(a, tau).abs()
    tensor([[0.],
            [1.]])
    """, autocast={"cpu": "float32"}, casts_out=True, in_python=_ON_CUDA)  # fmt: skip

ormqr = operator("ormqr", """Q C, or C Q unless `left`, where C is `input3` and Q the whole product of reflectors from
    `geqrf` with their factors `input2` (`transpose`: Qᴴ).

    >>> a, tau = cresset.geqrf(cresset.tensor([[3.0], [4.0]]))
    >>> cresset.ormqr(a, tau, cresset.tensor([[3.0], [4.0]]), transpose=True).abs().round()
    tensor([[5.],
            [0.]])
    """, autocast={"cpu": "float32"}, casts_out=True, in_python=_ON_CUDA)  # fmt: skip


def _reflectors(input, tau):
    """Householder's reflectors H = I - tau v vᴴ, as pairs (v, tau): v is a column of `input` below a one."""
    places = cresset.arange(input.size(-2), device=input.device).unsqueeze(-1)
    return [
        (
            input[..., :, i : i + 1].masked_fill(places < i, 0).masked_fill(places == i, 1),
            tau[..., i : i + 1].unsqueeze(-1),
        )
        for i in range(tau.size(-1))
    ]


def _through_reflectors(pairs, C, grad):
    """With R = … (I - t v vᴴ) C: (gC, [(gv, gt) of each pair]).

    A step R' = R - t v w with w = vᴴ R gives gt = -(vᴴ gR') wᴴ, gv = -conj(t) gR' wᴴ - t R (gR'ᴴ v) and
    gR = gR' - conj(t) v (vᴴ gR').
    """
    steps = []
    for v, t in pairs:
        w = v.mH @ C
        steps.append((C, w))
        C = C - t * (v @ w)
    found = []
    for (v, t), (R, w) in zip(reversed(pairs), reversed(steps), strict=True):
        u = v.mH @ grad
        found.append((-(t.conj() * (grad @ w.mH)) - t * (R @ u.mH), -(u @ w.mH)))
        grad = grad - t.conj() * (v @ u)
    return grad, found[::-1]


def _in_place_of(input, tau, found):
    """(gradient of the reflectors' matrix, of their factors), from those of each in their order."""
    grad, factors = cresset.zeros_like(input), cresset.zeros_like(tau)
    if not found:
        return grad, factors
    columns = cresset.cat([gv for gv, _ in found], -1).tril(-1)
    missing = input.size(-1) - columns.size(-1)
    if missing:
        columns = cresset.cat([columns, columns.new_zeros((*columns.shape[:-1], missing))], -1)
    return columns, cresset.cat([gt.squeeze(-1) for _, gt in found], -1)


@householder_product.derivative
def _(grad, input, tau):
    identity = cresset.eye(input.size(-2), input.size(-1), dtype=input.dtype, device=input.device).expand(input.shape)
    _, found = _through_reflectors(_reflectors(input, tau)[::-1], identity, grad)
    of_input, of_tau = _in_place_of(input, tau, found[::-1])
    yield lambda: of_input
    yield lambda: of_tau


@householder_product.batch
def _(call):
    return all_full(call, 0, 1)


@ormqr.derivative
def _(grad, input, input2, input3, left, transpose):
    # C Q is (Qᴴ Cᴴ)ᴴ. Q = H₁ H₂ …: the last reflector meets a matrix on its right first. Qᴴ has them conjugated, in
    # turn.
    turned, C, incoming = (transpose, input3, grad) if left else (not transpose, input3.mH, grad.mH)
    pairs = _reflectors(input, input2)
    pairs = [(v, t.conj()) for v, t in pairs] if turned else pairs[::-1]
    of_C, found = _through_reflectors(pairs, C, incoming)
    found = [(gv, gt.conj()) for gv, gt in found] if turned else found[::-1]
    of_input, of_tau = _in_place_of(input, input2, found)
    yield lambda: of_input
    yield lambda: of_tau
    yield lambda: of_C if left else of_C.mH


@ormqr.batch
def _(call):
    return all_full(call, 0, 1, 2)
