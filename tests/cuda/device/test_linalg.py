"""Linear algebra on CUDA through cuSOLVER and cuBLAS: what the CPU gives, or what defines it where that is not unique;
with gradients.
"""

import contextlib
import functools

import pytest

import cresset
from cresset import linalg

TOLERANCE = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)
# One matrix, a batch, a batch of batches.
EVERY_BATCH = pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)


def made(*shape, dtype="float64", seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return cresset.randn(shape, dtype=getattr(cresset, dtype), generator=generator)


def positive(*shape, dtype="float64"):
    """Hermitian matrices with eigenvalues of at least one."""
    a = made(*shape, dtype=dtype)
    return a @ a.mH + cresset.eye(shape[-1], dtype=a.dtype)


def regular(*shape, dtype="float64"):
    """Square matrices far from singular ones."""
    return made(*shape, dtype=dtype) + 4 * cresset.eye(shape[-1], dtype=getattr(cresset, dtype))


def close(result, expected, dtype="float64"):
    assert result.is_cuda and result.dtype == expected.dtype and result.shape == expected.shape
    if not expected.numel():
        return
    error = (result.cpu() - expected).abs().max().item()
    assert error <= TOLERANCE[dtype] * max(expected.abs().max().item(), 1), error


def results(value):
    return list(value) if isinstance(value, tuple) else [value]


def agrees(function, *tensors, dtype="float64", gradients=True):
    """The results, and the gradients of the arguments for fixed ones of the floating results."""

    def computed(device):
        there = [t.detach().to(device) for t in tensors]
        there = [t.requires_grad_() if gradients and (t.is_floating_point() or t.is_complex()) else t for t in there]
        out = results(function(*there))
        kept = [r for r in out if r.requires_grad]
        if kept:
            grads = [made(*r.shape, dtype=str(r.dtype)[6:], seed=9 + i).to(device) for i, r in enumerate(kept)]
            cresset.autograd.backward(kept, grads)
        return [r.detach() for r in out] + [t.grad for t in there if t.requires_grad]

    for result, expected in zip(computed("cuda"), computed("cpu"), strict=True):
        close(result, expected, dtype)


# ---------------------------------------------------------------- A = L Lᴴ


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, batch, upper):
    agrees(lambda a: linalg.cholesky(a, upper=upper), positive(*batch, 5, 5, dtype=dtype), dtype=dtype)


def test_cholesky_reads_one_triangle():
    a = positive(2, 4, 4)
    for upper in (False, True):
        one = a.triu() if upper else a.tril()
        close(linalg.cholesky(one.cuda(), upper=upper), linalg.cholesky(one, upper=upper))


def test_matrices_that_are_not_positive():
    a = positive(3, 3, 3)
    a[1, 1, 1] = -5
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\).*leading minor of order 2"):
        linalg.cholesky(a.cuda())
    with pytest.raises(linalg.LinAlgError, match="leading minor of order 2 is not positive-definite"):
        linalg.cholesky(a[1].cuda())
    assert linalg.cholesky_ex(a.cuda()).info.tolist() == [0, 2, 0]
    assert linalg.cholesky_ex(a.cuda()).info.dtype == cresset.int32


@EVERY_BATCH
def test_solving_with_cholesky(batch):
    b, factor = made(*batch, 4, 2), linalg.cholesky(positive(*batch, 4, 4))
    agrees(lambda b, L: cresset.cholesky_solve(b, L), b, factor)
    agrees(cresset.cholesky_inverse, factor)


# ---------------------------------------------------------------- A = P L U


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5), (1, 1)], ids=str)
def test_lu(dtype, batch, sizes):
    a = made(*batch, *sizes, dtype=dtype)
    P, L, U = linalg.lu(a.cuda())
    close(P @ L @ U, a, dtype)
    assert L.cpu().equal(L.cpu().tril()) and U.cpu().equal(U.cpu().triu())
    agrees(lambda a: functools.reduce(cresset.matmul, linalg.lu(a)), a, dtype=dtype)
    if not a.is_complex():  # of which libraries measure the size in two ways, to choose a row
        agrees(linalg.lu_factor, a, dtype=dtype)
        agrees(linalg.lu, a, dtype=dtype)


@EVERY_BATCH
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_lu_without_exchanges(batch, sizes):
    a = made(*batch, *sizes) + 4 * cresset.eye(*sizes, dtype=cresset.float64)
    P, L, U = linalg.lu(a.cuda(), pivot=False)
    assert P.numel() == 0
    close(L @ U, a)
    assert (
        linalg.lu_factor(a.cuda(), pivot=False)
        .pivots.cpu()
        .equal(cresset.arange(1, 1 + min(sizes), dtype=cresset.int32).expand(*batch, -1))
    )
    there = a.cuda().requires_grad_()
    cresset.matmul(*linalg.lu(there, pivot=False)[1:]).sum().backward()
    close(there.grad, cresset.ones_like(a))
    with pytest.raises(RuntimeError, match="without pivoting"):
        linalg.lu(a, pivot=False)


@EVERY_DTYPE
@EVERY_BATCH
def test_solving_equations(dtype, batch):
    a, b = regular(*batch, 4, 4, dtype=dtype), made(*batch, 4, 3, dtype=dtype, seed=1)
    agrees(linalg.solve, a, b, dtype=dtype)
    agrees(lambda a, b: linalg.solve(a, b, left=False), a, b.mT, dtype=dtype)
    agrees(lambda a, b: linalg.solve(a, b), a, made(*batch, 4, dtype=dtype, seed=1), dtype=dtype)


def test_solving_with_a_broadcast_batch():
    agrees(linalg.solve, regular(4, 4), made(3, 4, 2, seed=1))
    agrees(linalg.solve, regular(2, 1, 4, 4), made(3, 4, 2, seed=1))


@EVERY_DTYPE
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
@EVERY_BATCH
def test_solving_from_a_factorization(dtype, adjoint, left, batch):
    factors = linalg.lu_factor(regular(*batch, 4, 4, dtype=dtype))
    b = made(*batch, 4, 2, dtype=dtype, seed=1)
    agrees(
        lambda lu, p, b: linalg.lu_solve(lu, p, b if left else b.mT, left=left, adjoint=adjoint),
        *factors,
        b,
        dtype=dtype,
    )
    agrees(
        lambda lu, p, b: linalg.lu_solve(lu, p, b if left else b.mT, left=left, adjoint=adjoint),
        *factors,
        b,
        dtype=dtype,
        gradients=False,
    )


@EVERY_DTYPE
@EVERY_BATCH
def test_inverses_and_determinants(dtype, batch):
    a = regular(*batch, 4, 4, dtype=dtype)
    agrees(linalg.inv, a, dtype=dtype)
    agrees(linalg.det, a, dtype=dtype)
    agrees(linalg.slogdet, a, dtype=dtype)


def test_singular_matrices():
    a = regular(3, 3, 3)
    a[2, :, 1] = 0
    for function in (linalg.inv, lambda a: linalg.solve(a, a)):
        with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 2\).*singular"):
            function(a.cuda())
        with pytest.raises(linalg.LinAlgError, match="singular"):
            function(a[2].cuda())
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 2\): U\[2,2\] is zero"):
        linalg.lu_factor(a.cuda())
    assert linalg.inv_ex(a.cuda()).info.tolist() == [0, 0, 2]
    assert linalg.det(a.cuda())[2].item() == 0
    sign, log = linalg.slogdet(a[2].cuda())
    assert sign.item() == 0 and log.item() == float("-inf")


def test_many_small_matrices_and_few_large_ones():
    for batch, n in ((40, 3), (2, 70), (2, 520)):
        a, b = regular(batch, n, n), made(batch, n, 2, seed=1)
        a = a + n * cresset.eye(n, dtype=a.dtype)
        x = linalg.solve(a.cuda(), b.cuda())
        close(a.cuda() @ x, b)
        if n < 100:
            close(linalg.inv(a.cuda()) @ a.cuda(), cresset.eye(n, dtype=a.dtype).expand(batch, n, n))
            close(
                linalg.solve_triangular(a.tril().cuda(), b.cuda(), upper=False),
                linalg.solve_triangular(a.tril(), b, upper=False),
            )


def test_unpacking():
    lu, pivots = linalg.lu_factor(made(3, 4, 4))
    agrees(cresset.lu_unpack, lu, pivots, gradients=False)


# ---------------------------------------------------------------- triangles


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_equations(dtype, batch, upper, left, unit):
    a = regular(*batch, 4, 4, dtype=dtype)
    b = made(*batch, *((4, 2) if left else (2, 4)), dtype=dtype, seed=1)
    agrees(lambda a, b: linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit), a, b, dtype=dtype)


# ---------------------------------------------------------------- A = Q R


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_qr(dtype, batch, sizes):
    a = made(*batch, *sizes, dtype=dtype)
    Q, R = linalg.qr(a.cuda())
    close(Q @ R, a, dtype)
    close(Q.mH @ Q, cresset.eye(Q.size(-1), dtype=a.dtype).expand(*batch, -1, -1), dtype)
    assert R.cpu().equal(R.cpu().triu())
    # What does not depend on the columns' free phase.
    agrees(lambda a: tuple(part.abs().square() for part in linalg.qr(a)), a, dtype=dtype)


@pytest.mark.parametrize("mode", ["complete", "r"])
def test_modes_of_qr(mode):
    for sizes in ((5, 3), (2, 3, 5)):
        a = made(*sizes)
        Q, R = linalg.qr(a.cuda(), mode=mode)
        close(R.abs(), linalg.qr(a, mode=mode)[1].abs())
        if mode == "r":
            assert Q.numel() == 0
        else:
            close(Q @ R, a)
            close(Q.mH @ Q, cresset.eye(sizes[-2], dtype=a.dtype).expand(*sizes[:-2], -1, -1))


def test_reflectors():
    a = made(2, 5, 3)
    there, factors = cresset.geqrf(a.cuda())
    close(linalg.householder_product(there, factors) @ there[:, :3].triu(), a)
    agrees(linalg.householder_product, *cresset.geqrf(a))
    agrees(linalg.householder_product, *cresset.geqrf(a), gradients=False)
    agrees(lambda a, tau, c: cresset.ormqr(a, tau, c), *cresset.geqrf(a), made(2, 5, 4, seed=1))


@EVERY_DTYPE
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_with_reflectors(dtype, left, transpose):
    a, tau = cresset.geqrf(made(2, 5, 3, dtype=dtype))
    c = made(2, *((5, 4) if left else (4, 5)), dtype=dtype, seed=1)
    for gradients in (False, True):
        agrees(lambda a, tau, c: cresset.ormqr(a, tau, c, left, transpose), a, tau, c, dtype=dtype, gradients=gradients)


# ---------------------------------------------------------------- A = L D Lᵀ


@EVERY_DTYPE
@EVERY_BATCH
def test_symmetric_factorizations(dtype, batch):
    a, b = made(*batch, 6, 6, dtype=dtype), made(*batch, 6, 2, dtype=dtype, seed=1)
    a = a + a.mT
    factors = linalg.ldl_factor(a.cuda())
    close(a.cuda() @ linalg.ldl_solve(*factors, b.cuda()), b, dtype)
    agrees(linalg.ldl_solve, *linalg.ldl_factor(a), b, dtype=dtype, gradients=False)
    assert linalg.ldl_factor_ex(a.cuda()).info.tolist() == linalg.ldl_factor_ex(a).info.tolist()


def test_hermitian_factorizations_are_made_on_the_cpu():
    a = positive(3, 3, dtype="complex128").cuda()
    with pytest.raises(NotImplementedError, match="linalg_ldl_factor_ex"):
        linalg.ldl_factor(a, hermitian=True)


# ---------------------------------------------------------------- eigenvalues


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_hermitian_eigenvalues(dtype, batch, UPLO):
    a = positive(*batch, 5, 5, dtype=dtype)
    values, vectors = linalg.eigh(a.cuda(), UPLO)
    close(values, linalg.eigvalsh(a, UPLO), dtype)
    close(vectors @ (values.unsqueeze(-1) * vectors.mH), a, dtype)
    close(vectors.mH @ vectors, cresset.eye(5, dtype=a.dtype).expand(a.shape), dtype)
    agrees(lambda a: linalg.eigvalsh(a, UPLO), a, dtype=dtype)
    agrees(lambda a: linalg.eigvalsh(a, UPLO), a, dtype=dtype, gradients=False)


def test_gradients_through_eigenvectors():
    weights = made(4)

    def program(a):  # what does not depend on the vectors' free phase
        values, vectors = linalg.eigh(a)
        return (vectors.abs().square() * weights.to(a.device)).sum(-1) + values

    agrees(program, positive(2, 4, 4))
    agrees(program, positive(2, 4, 4, dtype="complex128"))


@EVERY_DTYPE
@EVERY_BATCH
def test_general_eigenvalues(dtype, batch):
    a = made(*batch, 5, 5, dtype=dtype)
    values, vectors = linalg.eig(a.cuda())
    wide = a.to(values.dtype).cuda()
    close(wide @ vectors, (vectors * values.unsqueeze(-2)).cpu(), dtype)
    close(vectors.abs().square().sum(-2), cresset.ones(*batch, 5, dtype=vectors.real.dtype), dtype)
    trace = linalg.eigvals(a.cuda()).sum(-1)
    close(trace, a.diagonal(0, -2, -1).sum(-1).to(values.dtype), dtype)
    agrees(lambda a: linalg.eigvals(a).pow(3).sum(-1), a, dtype=dtype)


def test_eigenvalues_of_what_is_not_finite():
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        linalg.eig(cresset.full((2, 2), float("nan"), device="cuda"))


# ---------------------------------------------------------------- singular values


def check_svd(a, dtype, **arguments):
    m, n = a.shape[-2:]
    U, S, Vh = linalg.svd(a.cuda(), **arguments)
    k = min(m, n)
    whole = arguments.get("full_matrices", True)
    assert U.shape == (*a.shape[:-1], m if whole else k) and Vh.shape == (*a.shape[:-2], n if whole else k, n)
    close(S, linalg.svdvals(a), dtype)
    close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a, dtype)
    close(U.mH @ U, cresset.eye(U.size(-1), dtype=a.dtype).expand(*a.shape[:-2], -1, -1), dtype)
    close(Vh @ Vh.mH, cresset.eye(Vh.size(-2), dtype=a.dtype).expand(*a.shape[:-2], -1, -1), dtype)


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_singular_values(dtype, batch, full_matrices, sizes):
    a = made(*batch, *sizes, dtype=dtype)
    check_svd(a, dtype, full_matrices=full_matrices)
    agrees(linalg.svdvals, a, dtype=dtype)
    agrees(linalg.svdvals, a, dtype=dtype, gradients=False)


@pytest.mark.parametrize("driver", [None, "gesvd", "gesvdj", "gesvda"])
@pytest.mark.parametrize("sizes", [(5, 3), (2, 3, 5)], ids=str)
def test_drivers_of_singular_values(driver, sizes):
    check_svd(made(*sizes), "float64", driver=driver)
    check_svd(made(*sizes), "float64", driver=driver, full_matrices=False)


def test_drivers_that_are_not_known():
    with pytest.raises(RuntimeError, match="unknown svd driver"):
        linalg.svd(cresset.eye(2, device="cuda"), driver="gesdd")


def test_singular_values_that_rotations_do_not_reach():
    """The emulated rotations of 7 by 7 matrices never converge."""
    check_svd(made(7, 7), "float64")
    check_svd(made(2, 7, 7, dtype="complex128"), "complex128")
    agrees(linalg.svdvals, made(7, 7), gradients=False)


def test_larger_singular_values():
    check_svd(made(2, 40, 36), "float64")
    check_svd(made(2, 36, 40), "float64", full_matrices=False)


def test_singular_values_of_what_is_not_finite():
    a = made(2, 3, 3)
    a[1, 0, 0] = float("nan")
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\).*non-finite values"):
        linalg.svd(a.cuda())


def test_gradients_through_singular_vectors():
    weights = made(3)

    def program(a):
        U, S, Vh = linalg.svd(a, full_matrices=False)
        return (U.abs().square() * weights.to(a.device)).sum(-1), (Vh.abs().square() * S.unsqueeze(-1)).sum(-2)

    agrees(program, made(2, 5, 3))
    agrees(program, made(2, 3, 3))


def test_pseudo_inverses_ranks_norms_and_conditions():
    a = made(2, 5, 3)
    agrees(linalg.pinv, a)
    agrees(lambda a: linalg.pinv(a, hermitian=True), positive(2, 4, 4))
    agrees(linalg.matrix_rank, a, gradients=False)
    agrees(linalg.cond, regular(2, 4, 4))
    for order in ("nuc", 2, -2):
        agrees(lambda a: linalg.matrix_norm(a, order), a)


# ---------------------------------------------------------------- least squares


@EVERY_DTYPE
@EVERY_BATCH
@pytest.mark.parametrize("sizes", [(6, 3), (3, 6), (4, 4)], ids=str)
def test_least_squares(dtype, batch, sizes):
    a, b = made(*batch, *sizes, dtype=dtype), made(*batch, sizes[0], 2, dtype=dtype, seed=1)
    solution, residuals, rank, values = linalg.lstsq(a.cuda(), b.cuda())
    expected = linalg.lstsq(a, b, driver="gels")
    close(solution, expected.solution, dtype)
    close(residuals, expected.residuals, dtype)
    assert rank.numel() == 0 and values.numel() == 0
    agrees(lambda a, b: linalg.lstsq(a, b, driver="gels").solution, a, b, dtype=dtype)


def test_least_squares_without_full_rank():
    a = made(4, 3)
    a[:, 1] = 0
    with pytest.raises(linalg.LinAlgError, match="does not have full rank"):
        linalg.lstsq(a.cuda(), made(4, 1).cuda())
    with pytest.raises(RuntimeError, match=r"one of \(gels\)"):
        linalg.lstsq(a.cuda(), made(4, 1).cuda(), driver="gelsd")


# ---------------------------------------------------------------- any tensors


def test_tensors_of_any_strides():
    a, b = regular(4, 4), made(4, 3)
    agrees(lambda a: linalg.inv(a.mT), a)
    agrees(lambda a: linalg.inv(a[::2, ::2]), a)
    agrees(lambda a: linalg.cholesky((a @ a.mT)[:3, :3]), a)
    agrees(lambda a, b: linalg.solve(a.mT, b[:, ::2]), a, b)
    agrees(lambda a: linalg.inv(a.expand(3, 4, 4)), a)
    z = regular(4, 4, dtype="complex128")
    agrees(lambda z: linalg.inv(z.conj()), z)
    agrees(lambda z, b: linalg.solve(z.mH, b.conj()), z, made(4, 2, dtype="complex128", seed=1))
    agrees(
        lambda z, b: linalg.solve_triangular(z.mH, b, upper=True),
        z,
        made(4, 2, dtype="complex128", seed=1),
        gradients=False,
    )


def test_the_arguments_stay():
    a, b = regular(3, 4, 4).cuda(), made(3, 4, 2).cuda()
    in_columns = a.mT.contiguous().mT
    for function in (
        linalg.inv,
        linalg.svd,
        linalg.qr,
        linalg.lu_factor,
        linalg.eigh,
        linalg.eig,
        linalg.det,
        lambda a: linalg.solve(a, b),
        lambda a: linalg.lstsq(a, b),
    ):
        for matrix in (a, in_columns, b.mT.contiguous().mT @ b.mT):
            before = matrix.clone(), b.clone()
            with contextlib.suppress(linalg.LinAlgError):  # the third has rank 2
                function(matrix)
            assert cresset.equal(matrix, before[0]) and cresset.equal(b, before[1])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)], ids=str)
def test_nothing(shape):
    a = cresset.zeros(shape)
    for function in (
        linalg.cholesky,
        linalg.inv,
        linalg.lu_factor,
        linalg.det,
        linalg.slogdet,
        linalg.qr,
        linalg.eigh,
        linalg.svd,
        linalg.svdvals,
        linalg.eigvals,
    ):
        for result, expected in zip(results(function(a.cuda())), results(function(a)), strict=True):
            close(result, expected)
    for sizes in ((3, 0), (0, 3), (2, 3, 0)):
        for function in (linalg.svd, linalg.qr, lambda a: linalg.qr(a, mode="complete")):
            for result, expected in zip(
                results(function(cresset.zeros(sizes).cuda())), results(function(cresset.zeros(sizes))), strict=True
            ):
                close(result, expected)
    assert linalg.solve(cresset.eye(3, device="cuda"), cresset.zeros(3, 0, device="cuda")).shape == (3, 0)


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="square"):
        linalg.inv(cresset.zeros(2, 3, device="cuda"))
    with pytest.raises(RuntimeError, match="floating point or complex"):
        linalg.inv(cresset.zeros(2, 2, dtype=cresset.int64, device="cuda"))
    with pytest.raises((RuntimeError, NotImplementedError), match="Low precision"):
        linalg.inv(cresset.zeros(2, 2, dtype=cresset.float16, device="cuda"))
    with pytest.raises(RuntimeError, match="same device"):
        linalg.solve(cresset.eye(2, device="cuda"), cresset.ones(2, 1))
    with pytest.raises(RuntimeError, match="same device"):
        linalg.solve_triangular(cresset.eye(2), cresset.ones(2, 1, device="cuda"), upper=True)


def test_second_derivatives():
    a = regular(3, 3).cuda().requires_grad_()
    assert cresset.autograd.gradgradcheck(linalg.inv, (a,))
    assert cresset.autograd.gradgradcheck(linalg.det, (a,))


def test_vmap():
    a = regular(3, 4, 4)
    close(cresset.func.vmap(linalg.inv)(a.cuda()), linalg.inv(a))
    close(cresset.func.vmap(lambda a: linalg.lu(a)[0])(a.cuda()), linalg.lu(a)[0])


def test_another_stream():
    a = regular(3, 4, 4)
    there = a.cuda()
    cresset.cuda.synchronize()
    stream = cresset.cuda.Stream()
    with cresset.cuda.stream(stream):
        result = linalg.inv(there)
    stream.synchronize()
    close(result, linalg.inv(a))


# ---------------------------------------------------------------- matrices that one block has


@EVERY_DTYPE
@pytest.mark.parametrize("n, columns", [(1, 1), (31, 5), (33, 70), (70, 3)])
def test_triangles_of_small_matrices(dtype, n, columns):
    a, b = regular(2, n, n, dtype=dtype), made(2, n, columns, dtype=dtype, seed=1)
    for upper in (False, True):
        triangle = a.triu() if upper else a.tril()
        for given in (a, a.mT.contiguous().mT, a.mH.contiguous().mH):
            found = linalg.solve_triangular(given.cuda(), b.cuda(), upper=upper)
            close(triangle.cuda() @ found, b, dtype)
        ones = a.triu(1) / n if upper else a.tril(-1) / n
        found = linalg.solve_triangular(ones.cuda(), b.cuda(), upper=upper, unitriangular=True)
        close(found + ones.cuda() @ found, b, dtype)
        factor = linalg.cholesky(positive(2, n, n, dtype=dtype) + 40 * cresset.eye(n), upper=upper)
        whole = factor.mH @ factor if upper else factor @ factor.mH
        for given in (factor, factor.mT.contiguous().mT):
            close(whole.cuda() @ cresset.cholesky_solve(b.cuda(), given.cuda(), upper), b, dtype)


@EVERY_DTYPE
@pytest.mark.parametrize("sizes", [(1, 1), (5, 40), (40, 5), (33, 33), (70, 20)], ids=str)
def test_reflectors_of_small_matrices(dtype, sizes):
    a = made(3, *sizes, dtype=dtype)
    a[1] *= 1e-3
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a.cuda(), mode)
        close(q @ r, a, dtype)
        close(q.mH @ q, cresset.eye(q.size(-1), dtype=a.dtype).expand(3, -1, -1), dtype)
        assert r.equal(r.triu())
    for found, expected in zip(cresset.geqrf(a.cuda()), cresset.geqrf(a), strict=True):
        close(found, expected, dtype)


def test_reflectors_of_zeros_and_of_huge_and_tiny_numbers():
    a = made(4, 6, 3)
    a[0] = 0
    a[1, :, 1] = 0
    a[2] *= 1e200
    a[3] *= 1e-200
    q, r = linalg.qr(a.cuda())
    for k in range(4):
        size = max(a[k].abs().max().item(), 1e-300)
        close(q[k] @ r[k] / size, a[k] / size)
        close(q[k].mT @ q[k], cresset.eye(3, dtype=a.dtype))


@EVERY_DTYPE
@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 3, 2), (40, 33, 70), (70, 65, 1)], ids=str)
def test_least_squares_of_small_matrices(dtype, sizes):
    m, n, columns = sizes
    a = made(3, m, n, dtype=dtype) + 4 * cresset.eye(m, n, dtype=getattr(cresset, dtype))
    b = made(3, m, columns, dtype=dtype, seed=1)
    close(linalg.lstsq(a.cuda(), b.cuda()).solution, linalg.lstsq(a, b, driver="gels").solution, dtype)


def test_least_squares_of_matrices_without_full_rank():
    a = regular(3, 4, 4)
    a[1, :, 2] = 0
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\).*does not have full rank \(error code: 3\)"):
        linalg.lstsq(a.cuda(), made(3, 4, 1).cuda())


@pytest.mark.parametrize("n", [4, 130])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_equations_of_factors_with_exchanges(n, batch):
    a, b = made(*batch, n, n) + cresset.eye(n, dtype=cresset.float64), made(*batch, n, 3, seed=1)
    factors = linalg.lu_factor(a.cuda())
    close(a.cuda() @ linalg.lu_solve(*factors, b.cuda()), b)
    close(a.mH.cuda() @ linalg.lu_solve(*factors, b.cuda(), adjoint=True), b)


@pytest.mark.parametrize("bad", [0, 5, -(2**31)])
def test_pivots_that_are_none(bad):
    lu, pivots = linalg.lu_factor(regular(2, 4, 4).cuda())
    pivots[1, 2] = bad
    linalg.lu_solve(lu, pivots, made(2, 4, 1).cuda())
    with pytest.raises(IndexError, match="linalg.lu_solve: index .* is out of bounds for size 4, at position 6"):
        cresset.cuda.synchronize()
    assert cresset.ones(2, device="cuda").sum().item() == 2


@pytest.mark.parametrize("bad", [0, 2461, -(2**31)])
def test_pivots_that_are_none_of_a_large_matrix(bad):
    n = 2460  # a column of it and the pivots are more than a block's shared memory
    pivots = cresset.arange(1, n + 1, dtype=cresset.int32)
    pivots[7] = bad
    found = linalg.lu_solve(
        cresset.eye(n, dtype=cresset.complex128, device="cuda"), pivots.cuda(), made(n, 1, dtype="complex128").cuda()
    )
    with pytest.raises(IndexError, match=f"linalg.lu_solve: index .* is out of bounds for size {n}, at position 7"):
        cresset.cuda.synchronize()
    assert found.shape == (n, 1)
