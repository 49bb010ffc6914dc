"""linalg and PyTorch's: the same small programs give the same values, shapes, dtypes, named fields and exception
classes.
"""

import pytest

import cresset

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns of its older names

# Each program sees `lib` and, of its dtype, a square A, a positive-definite P, a symmetric (Hermitian) H, a tall T,
# a wide W, a batch B of square matrices, and right-hand sides b (a vector), C (3 × 2) and D (batch of 3 × 2).
VALUES = [
    "lib.linalg.inv(A)", "lib.linalg.inv(B)", "lib.linalg.inv_ex(A)", "lib.inverse(B)", "A.inverse()",
    "lib.linalg.solve(A, b)", "lib.linalg.solve(A, C)", "lib.linalg.solve(A, D)", "lib.linalg.solve(B, C)",
    "lib.linalg.solve_ex(B, D)",
    "lib.linalg.solve(A, C.mT, left=False)", "lib.linalg.det(B)", "lib.linalg.slogdet(B)", "A.slogdet()",
    "lib.logdet(P)",
    "lib.linalg.cholesky(P)", "lib.linalg.cholesky(P, upper=True)", "lib.linalg.cholesky_ex(P)",
    "lib.cholesky_solve(C, lib.linalg.cholesky(P))",
    "lib.cholesky_inverse(lib.linalg.cholesky(P))", "lib.linalg.lu(T)", "lib.linalg.lu(W)", "lib.linalg.lu(B)",
    "lib.linalg.lu_factor(A)",
    "lib.linalg.lu_factor_ex(T)", "lib.linalg.lu_solve(*lib.linalg.lu_factor(B), D)",
    "lib.lu_unpack(*lib.linalg.lu_factor(W))",
    "lib.lu_unpack(*lib.linalg.lu_factor(A), unpack_data=False)", "lib.linalg.ldl_factor(H)",
    "lib.linalg.ldl_factor(H, hermitian=True)",
    "lib.linalg.ldl_solve(*lib.linalg.ldl_factor(H, hermitian=True), C, hermitian=True)",
    "lib.linalg.qr(T)", "lib.linalg.qr(W)", "lib.linalg.qr(T, mode='complete')", "lib.linalg.qr(B, mode='r')",
    "lib.qr(T, some=False)",
    "lib.geqrf(T)", "lib.linalg.householder_product(*lib.geqrf(T))", "lib.ormqr(*lib.geqrf(T), T, transpose=True)",
    "lib.linalg.svdvals(B)", "lib.linalg.svd(W).S", "lib.svd(T, compute_uv=False)", "lib.linalg.eigvalsh(H)",
    "lib.linalg.eigvalsh(A, UPLO='U')",
    "lib.linalg.eigh(H).eigenvectors.abs()", "lib.linalg.pinv(T)", "lib.linalg.pinv(W, rtol=0.5)",
    "lib.linalg.pinv(H, hermitian=True)",
    "lib.pinverse(T)", "lib.linalg.matrix_rank(B)", "lib.linalg.matrix_rank(T, atol=1.0)",
    "lib.linalg.matrix_rank(H, hermitian=True)",
    "lib.linalg.lstsq(T, lib.ones(4, 2, dtype=A.dtype), driver='gelsd')",
    "lib.linalg.lstsq(T, lib.ones(4, dtype=A.dtype), driver='gels')",
    "lib.linalg.lstsq(W, C[:2])", "lib.linalg.lstsq(B, D, driver='gelss')",
    "lib.linalg.solve_triangular(A, C, upper=True)",
    "lib.linalg.solve_triangular(B, C.mT, upper=False, left=False, unitriangular=True)",
    "lib.triangular_solve(C, A, transpose=True)",
    "lib.linalg.matrix_exp(B)", "lib.linalg.matrix_power(B, 5)", "lib.linalg.matrix_power(A, -2)",
    "lib.linalg.matrix_power(A, 0)",
    "lib.linalg.vander(b)", "lib.linalg.vander(b, N=2)", "lib.linalg.multi_dot([A, C, C.mT])",
    "lib.linalg.cross(A, b.expand(1, 3))",
    "lib.linalg.vecdot(A, b)", "lib.linalg.diagonal(B)", "lib.linalg.tensorinv(A.reshape(3, 3, 1), ind=1)",
    "lib.linalg.tensorsolve(A.reshape(3, 1, 3), b.unsqueeze(1))",
    *[f"lib.linalg.matrix_norm(B, {order})" for order in ("'fro'", "'nuc'", 1, -1, 2, -2, "float('inf')",
        "-float('inf')")],
    *[f"lib.linalg.cond(B, {order})" for order in ("None", "'fro'", "'nuc'", 1, -1, 2, -2, "float('inf')")],
    "lib.linalg.norm(A)", "lib.linalg.norm(A, 'nuc', keepdim=True)", "lib.linalg.norm(B, 1, dim=(0, 2))",
    "lib.linalg.norm(B, 3, dim=1)",
    "lib.linalg.vector_norm(B, 3)", "lib.linalg.norm(b, float('inf'))", "lib.nuclear_norm(A)",
    "lib.frobenius_norm(B, dim=(0, 1))",
]  # fmt: skip

RAISE = [
    "lib.linalg.inv(A[0])", "lib.linalg.inv(T)", "lib.linalg.inv(A * 0)", "lib.linalg.inv(A.long())",
    "lib.linalg.solve(A * 0, b)",
    "lib.linalg.solve(A, T)", "lib.linalg.solve(A, b, left=False)", "lib.linalg.cholesky(-P)", "lib.linalg.cholesky(T)",
    "lib.linalg.lu_factor(A * 0)",
    "lib.linalg.lu(A, pivot=False)", "lib.linalg.qr(A, mode='x')", "lib.linalg.svd(A[0])", "lib.linalg.svd(A.half())",
    "lib.linalg.svd(A * float('nan'))",
    "lib.linalg.svd(A, driver='gesvd')", "lib.linalg.eigh(A, UPLO='X')", "lib.linalg.eig(A * float('nan'))",
    "lib.linalg.matrix_norm(A, 5)",
    "lib.linalg.matrix_norm(A, dim=(0, 0))", "lib.linalg.matrix_norm(A, dim=(0, 7))", "lib.linalg.norm(B, 2)",
    "lib.linalg.norm(A, 'two')",
    "lib.linalg.cond(T, 1)", "lib.linalg.cond(A, 3)", "lib.linalg.multi_dot([A])", "lib.linalg.lstsq(A, b, driver='x')",
    "lib.linalg.lstsq(A, T)",
    "lib.linalg.vander(b, N=1)", "lib.linalg.matrix_power(T, 2)", "lib.linalg.tensorinv(A, ind=0)",
    "lib.linalg.cross(A, C)", "lib.solve(b, A)",
    "lib.linalg.solve_triangular(A, C)", "lib.linalg.det(3)", "lib.linalg.householder_product(W, b[:2])",
]  # fmt: skip


def matrices(lib, dtype):
    """The same matrices in either library."""
    generator = torch.Generator().manual_seed(1)

    def random(*shape):
        values = torch.randn(*shape, dtype=getattr(torch, dtype), generator=generator)
        return values if lib is torch else cresset.from_numpy(values.numpy().copy())

    A, T, W, B, b, C, D = (random(*s) for s in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (3,), (3, 2), (2, 3, 2)))
    eye = lib.eye(3, dtype=A.dtype)
    return {"lib": lib, "A": A, "T": T, "W": W, "B": B, "b": b, "C": C, "D": D, "P": A @ A.mH + eye, "H": A + A.mH}


def compare(ours, theirs):
    if isinstance(theirs, tuple):
        for place, field in enumerate(getattr(ours, "__match_args__", ())):
            assert getattr(theirs, field) is theirs[place]
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
        return
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    single = theirs.dtype in (torch.float32, torch.complex64)
    got = torch.from_numpy(ours.resolve_conj().numpy().copy())
    torch.testing.assert_close(got, theirs.resolve_conj(), rtol=1e-3 if single else 1e-9, atol=1e-3 if single else 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("program", VALUES)
def test_the_same_values(program, dtype):
    compare(eval(program, matrices(cresset, dtype)), eval(program, matrices(torch, dtype)))


@pytest.mark.parametrize("program", RAISE)
def test_the_same_exception_class(program):
    with pytest.raises(Exception) as theirs:
        eval(program, matrices(torch, "float64"))
    with pytest.raises(Exception) as ours:
        eval(program, matrices(cresset, "float64"))
    expected = cresset.linalg.LinAlgError if theirs.type is torch.linalg.LinAlgError else theirs.type
    assert issubclass(ours.type, expected), (ours.value, theirs.value)


@pytest.mark.parametrize("program", ["lib.svd_lowrank(B, q=2)", "lib.pca_lowrank(T, q=2)"])
def test_random_projections_draw_the_same_numbers(program):
    cresset.manual_seed(3)
    torch.manual_seed(3)
    names = matrices(cresset, "float64"), matrices(torch, "float64")
    for one, other in zip(eval(program, names[0]), eval(program, names[1]), strict=True):
        compare(one.abs(), other.abs())


def test_names_and_parameters_are_those_of_pytorch():
    names = [name for name in dir(torch.linalg) if not name.startswith("_") and name != "common_notes"]
    assert set(names) <= set(dir(cresset.linalg)), set(names) - set(dir(cresset.linalg))


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2],
}
# Of square A (P, positive-definite) and D: also where plain loops end and LAPACK begins.
FACTORS = [
    "lib.linalg.cholesky(P)", "lib.linalg.cholesky(P, upper=True)", "lib.linalg.lu(A)", "lib.linalg.lu_factor(A)",
    "lib.linalg.qr(A)", "lib.linalg.qr(A[..., :2])", "lib.linalg.qr(A[..., :2, :])",
    "lib.linalg.qr(A[..., :2], mode='complete')", "lib.geqrf(A)", "lib.linalg.householder_product(*lib.geqrf(A))",
    "lib.linalg.inv(P)", "lib.linalg.det(P / n)", "lib.linalg.slogdet(P)", "lib.linalg.solve(P, D)",
    "lib.linalg.solve(P, D[..., 0])", "lib.linalg.solve(P, D.mT, left=False)",
    "lib.linalg.solve_triangular(P, D, upper=True)",
    "lib.linalg.solve_triangular(P, D.mT, upper=False, left=False)",
    "lib.linalg.lu_solve(*lib.linalg.lu_factor(P), D, adjoint=True)",
    "lib.linalg.lu_solve(*lib.linalg.lu_factor(P), D.mT, left=False, adjoint=True)",
    "lib.cholesky_solve(D, lib.linalg.cholesky(P))", "lib.cholesky_inverse(lib.linalg.cholesky(P, upper=True), True)",
]  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 16, 17, 32, 33])
@pytest.mark.parametrize("program", FACTORS)
def test_factors_of_every_size_and_layout_are_those_of_pytorch(program, n):
    generator = torch.Generator().manual_seed(n)
    for dtype, batch, layout in (
        ("float32", (), "rows"), ("float64", (2,), "columns"), ("complex64", (3, 2), "every other"),
        ("complex128", (), "columns"), ("float64", (0,), "rows"),
    ):  # fmt: skip
        A = torch.randn(*batch, n, n, dtype=getattr(torch, dtype), generator=generator)
        D = torch.randn(*batch, n, 3, dtype=A.dtype, generator=generator)
        made = {"A": A, "D": D, "P": A @ A.mH + n * torch.eye(n, dtype=A.dtype)}
        found = []
        for lib, of in ((cresset, lambda x: cresset.from_numpy(x.numpy().copy())), (torch, lambda x: x)):
            result = eval(program, {"lib": lib, "n": n, **{k: LAYOUTS[layout](of(v)) for k, v in made.items()}})
            found.append(result if isinstance(result, tuple) else (result,))
        compare(tuple(found[0]), tuple(found[1]))
        for one, other in zip(*found, strict=True):
            if one.numel():
                assert [s for s, n in zip(one.stride(), one.shape, strict=True) if n > 1] == [
                    s for s, n in zip(other.stride(), other.shape, strict=True) if n > 1
                ], (program, dtype, batch, layout)
