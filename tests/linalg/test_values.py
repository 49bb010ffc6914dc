"""Functions of linalg on matrices whose answers can be worked out by hand, and the errors they raise."""

import math
import subprocess
import sys

import pytest

import cresset
from cresset import linalg

DTYPES = [cresset.float32, cresset.float64, cresset.complex64, cresset.complex128]


def close(a, b, tolerance=1e-5):
    return cresset.allclose(a, b.to(a.dtype), rtol=tolerance, atol=tolerance)


@pytest.fixture(params=[(3, 3), (2, 3, 3), (2, 1, 3, 3), (0, 3, 3), (0, 0), (1, 1)], ids=str)
def square(request):
    cresset.manual_seed(0)
    shape = request.param
    return cresset.randn(*shape, dtype=cresset.float64) + 3 * cresset.eye(shape[-1], dtype=cresset.float64)


@pytest.fixture(params=[(3, 3), (4, 2), (2, 4), (2, 4, 3), (0, 2, 3), (3, 0), (0, 3)], ids=str)
def rectangular(request):
    cresset.manual_seed(0)
    return cresset.randn(*request.param, dtype=cresset.complex128)


class TestProductsGiveTheMatrixBack:
    """A factorization's factors multiply to what was factored."""

    def test_lu(self, rectangular):
        P, L, U = linalg.lu(rectangular)
        assert close(P @ L @ U, rectangular)

    def test_qr(self, rectangular):
        for mode in ("reduced", "complete"):
            Q, R = linalg.qr(rectangular, mode)
            assert close(Q @ R, rectangular)
            assert close(Q.mH @ Q, cresset.eye(Q.size(-1)).expand(Q.mH.shape[:-1] + (Q.size(-1),)))

    def test_qr_mode_r_gives_the_same_r_and_no_q(self, rectangular):
        Q, R = linalg.qr(rectangular, "r")
        assert Q.shape == (0,) and close(R, linalg.qr(rectangular).R)

    def test_svd(self, rectangular):
        U, S, Vh = linalg.svd(rectangular, full_matrices=False)
        assert close((U * S.unsqueeze(-2)) @ Vh, rectangular)
        assert S.dtype == cresset.float64 and close(S, linalg.svdvals(rectangular))

    def test_full_svd_has_square_bases(self, rectangular):
        U, S, Vh = linalg.svd(rectangular)
        for basis in (U, Vh):
            assert basis.size(-1) == basis.size(-2)
            assert close(basis @ basis.mH, cresset.eye(basis.size(-1)).expand(basis.shape))

    def test_cholesky(self, square):
        A = square @ square.mT
        L = linalg.cholesky(A)
        assert close(L @ L.mT, A) and close(linalg.cholesky(A, upper=True), L.mT)

    def test_eigh(self, square):
        A = square + square.mT
        L, V = linalg.eigh(A)
        assert close((V * L.unsqueeze(-2)) @ V.mT, A) and close(linalg.eigvalsh(A, UPLO="U"), L)

    def test_eig(self, square):
        L, V = linalg.eig(square)
        assert L.dtype == V.dtype == cresset.complex128
        assert close(square.to(V.dtype) @ V, V * L.unsqueeze(-2)) and close(linalg.eigvals(square), L)

    def test_inv(self, square):
        assert close(linalg.inv(square) @ square, cresset.eye(square.size(-1)).expand(square.shape))

    def test_geqrf_and_its_reflectors(self, rectangular):
        a, tau = cresset.geqrf(rectangular)
        if a.size(-2) >= a.size(-1):
            assert close(linalg.householder_product(a, tau) @ a[..., : tau.size(-1), :].triu(), rectangular)
        R = a.triu()
        assert close(cresset.ormqr(a, tau, R), rectangular)
        assert close(cresset.ormqr(a, tau, rectangular, transpose=True), R)

    def test_ormqr_wants_a_factor_for_each_reflector(self):
        a, tau, other = cresset.ones(5, 3), cresset.ones(3), cresset.ones(5, 4)
        with pytest.raises(RuntimeError, match=r"tau.shape\[-1\] must be equal to min"):
            cresset.ormqr(a, tau[:2], other)
        with pytest.raises(RuntimeError, match=r"other.shape\[-1\] must be equal to input.shape\[-2\]"):
            cresset.ormqr(a, tau, other, left=False)
        with pytest.raises(RuntimeError, match="other must have at least 2 dimensions"):
            cresset.ormqr(a, tau, other[:, 0])
        with pytest.raises(RuntimeError, match=r"tau.shape\[-1\] must be equal to min"):  # before their dtype
            cresset.ormqr(a.long(), tau[:2].long(), other.long())
        with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
            cresset.ormqr(a.long(), tau.long(), other.long())

    def test_ldl_solves(self, square):
        A = square + square.mT
        B = cresset.ones(*A.shape[:-1], 2, dtype=A.dtype)
        assert close(A @ linalg.ldl_solve(*linalg.ldl_factor(A), B), B)

    def test_lu_solve_in_all_forms(self, square):
        A, factors = square, linalg.lu_factor(square)
        B = cresset.ones(*A.shape[:-1], 2, dtype=A.dtype)
        assert close(A @ linalg.lu_solve(*factors, B), B)
        assert close(A.mT @ linalg.lu_solve(*factors, B, adjoint=True), B)
        assert close(linalg.lu_solve(*factors, B.mT, left=False) @ A, B.mT)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_of_lapack_solves(dtype):
    A = cresset.tensor([[2, 1], [1, 3]], dtype=dtype)
    B = cresset.tensor([[4], [7]], dtype=dtype)
    X = linalg.solve(A, B)
    assert X.dtype == dtype and close(X, cresset.tensor([[1], [2]]))


@pytest.mark.parametrize("driver", ["gelsd", "gelss", "gelsy"])
def test_the_rank_is_given_once_for_each_matrix_whatever_the_right_hand_sides(driver):
    A, B = cresset.eye(2)[None], cresset.ones(3, 2, 1)
    found = linalg.lstsq(A, B, driver=driver)
    assert found.solution.shape == (3, 2, 1) and found.rank.tolist() == [2]
    assert found.singular_values.tolist() == ([] if driver == "gelsy" else [[1.0, 1.0]])
    assert linalg.lstsq(cresset.eye(2), B, driver=driver).rank.shape == ()
    assert linalg.lstsq(A.expand(3, 2, 2), B[:1], driver=driver).rank.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "driver",
    [
        "gels",
        *(pytest.param(name, marks=pytest.mark.cpu_only("LAPACK's drivers")) for name in ("gelsy", "gelsd", "gelss")),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_driver_of_lstsq_fits_a_line(driver, dtype):
    A = cresset.tensor([[1, 0], [1, 1], [1, 2]], dtype=dtype)
    B = cresset.tensor([[0], [3], [3]], dtype=dtype)
    result = linalg.lstsq(A, B, driver=driver)
    assert close(result.solution, cresset.tensor([[0.5], [1.5]]))
    if driver != "gelsy":  # (-0.5)² + 1² + (-0.5)²
        assert close(result.residuals, cresset.tensor([1.5]))
    if driver != "gels":
        assert result.rank.item() == 2


def test_det_and_slogdet_count_row_exchanges():
    A = cresset.tensor([[0.0, 2.0], [3.0, 0.0]])
    sign, logabsdet = linalg.slogdet(A)
    assert linalg.det(A).item() == pytest.approx(-6) and sign.item() == -1
    assert logabsdet.item() == pytest.approx(math.log(6))
    assert math.isnan(cresset.logdet(A).item())


def test_slogdet_of_a_singular_matrix_is_minus_infinity():
    sign, logabsdet = linalg.slogdet(cresset.zeros(2, 2))
    assert (sign.item(), logabsdet.item()) == (0.0, -math.inf)


def test_det_of_no_rows_is_one():
    assert linalg.det(cresset.zeros(0, 0)).item() == 1.0


@pytest.mark.parametrize(
    "order, expected",
    [
        ("fro", math.sqrt(30)),
        (1, 6),
        (-1, 4),
        (math.inf, 7),
        (-math.inf, 3),
        ("nuc", 6.0),
        (2, 5.4649857),
        (-2, 0.3659662),
    ],
)
def test_matrix_norms(order, expected):
    A = (
        cresset.tensor([[1.0, -2.0], [3.0, 4.0]])
        if order not in ("nuc", 2, -2)
        else cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    )
    expected = 5.4649857 + 0.3659662 if order == "nuc" else expected
    norm = linalg.matrix_norm(A, order)
    assert norm.item() == pytest.approx(expected, rel=1e-5)
    assert linalg.matrix_norm(A, order, keepdim=True).shape == (1, 1)
    assert linalg.norm(A, order).item() == norm.item()


def test_matrix_norm_takes_any_two_dims():
    A = cresset.arange(24.0).reshape(2, 3, 4)
    for order in ("nuc", 1, "fro"):
        norm = linalg.matrix_norm(A, order, dim=(2, 0), keepdim=True)
        assert norm.shape == (1, 3, 1)
        assert close(norm[0, 1, 0], linalg.matrix_norm(A[:, 1, :].mT, order))


def test_cond_of_a_singular_matrix_is_infinite():
    assert linalg.cond(cresset.zeros(2, 2), "fro").item() == math.inf
    assert linalg.cond(cresset.tensor([[4.0, 0.0], [0.0, 1.0]]), 1).item() == 4.0


def test_matrix_rank_and_pinv_use_the_tolerances():
    A = cresset.diag(cresset.tensor([1.0, 0.1, 0.001]))
    assert linalg.matrix_rank(A).item() == 3
    assert linalg.matrix_rank(A, atol=0.01).item() == 2
    assert linalg.matrix_rank(A, rtol=0.5, hermitian=True).item() == 1
    assert close(linalg.pinv(A, atol=0.01), cresset.diag(cresset.tensor([1.0, 10.0, 0.0])))
    assert close(
        linalg.pinv(A, rtol=cresset.tensor(0.5), hermitian=True), cresset.diag(cresset.tensor([1.0, 0.0, 0.0]))
    )


@pytest.mark.parametrize("n", [2, 4, 16])
@pytest.mark.parametrize("scale", [0.01, 2.0, 8.0])
def test_matrix_exp_of_small_matrices_in_single_precision_is_right_to_the_last_bit(n, scale):
    cresset.manual_seed(n)
    A = cresset.randn(20, n, n) * scale
    assert cresset.equal(linalg.matrix_exp(A), linalg.matrix_exp(A.double()).float())


def test_matrix_exp_of_large_and_small_matrices_in_one_batch():
    A = cresset.diag_embed(cresset.tensor([[0.0, 1.0], [20.0, -20.0]], dtype=cresset.float64))
    expected = cresset.diag_embed(cresset.tensor([[1.0, math.e], [math.exp(20), math.exp(-20)]], dtype=cresset.float64))
    assert cresset.allclose(linalg.matrix_exp(A), expected, rtol=1e-12, atol=1e-300)


def test_tensorsolve_and_tensorinv():
    A = cresset.eye(6).reshape(2, 3, 6) * 2
    assert linalg.tensorsolve(A, cresset.ones(2, 3)).tolist() == [0.5] * 6
    assert linalg.tensorinv(A, ind=2).shape == (6, 2, 3)


def test_low_rank_svd_finds_the_rank():
    cresset.manual_seed(0)
    A = cresset.randn(8, 2) @ cresset.randn(2, 5)
    for matrix in (A, A.mT):
        U, S, V = cresset.svd_lowrank(matrix, q=3)
        assert close((U * S) @ V.mT, matrix, 1e-4) and S[2].item() < 1e-4


def test_out_is_filled_and_given_back():
    A, out = cresset.tensor([[2.0]]), cresset.empty(0)
    assert linalg.inv(A, out=out) is out and out.tolist() == [[0.5]]
    Q, R = cresset.empty(0), cresset.empty(0)
    linalg.qr(A, out=(Q, R))
    assert R.abs().tolist() == [[2.0]]


def test_results_have_names():
    assert repr(linalg.inv_ex(cresset.eye(1))).startswith("torch.return_types.linalg_inv_ex(\ninverse=tensor")
    assert linalg.slogdet(cresset.eye(1)).__match_args__ == ("sign", "logabsdet")


def test_inputs_are_not_changed():
    A = cresset.tensor([[4.0, 1.0], [1.0, 3.0]])
    before = A.clone()
    for name in ("inv", "cholesky", "qr", "svd", "eigh", "eig", "lu", "det", "lu_factor", "ldl_factor"):
        getattr(linalg, name)(A)
        assert cresset.equal(A, before), name


SINGULAR = cresset.tensor([[1.0, 2.0], [2.0, 4.0]])
FAILURES = {
    "inv": (lambda: linalg.inv(SINGULAR), "linalg.inv: The diagonal element 2 is zero"),
    "inv of a batch": (
        lambda: linalg.inv(cresset.stack([cresset.eye(2), SINGULAR])),
        r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero",
    ),
    "solve": (
        lambda: linalg.solve(SINGULAR, cresset.ones(2)),
        "linalg.solve: The solver failed because the input matrix is singular",
    ),
    "cholesky of nan": (
        lambda: linalg.cholesky(cresset.tensor([[1.0, 0.0], [0.0, float("nan")]])),
        "leading minor of order 2 is not positive-definite",
    ),
    "cholesky": (lambda: linalg.cholesky(-cresset.eye(2)), "leading minor of order 1 is not positive-definite"),
    "lu_factor": (lambda: linalg.lu_factor(SINGULAR), r"U\[2,2\] is zero"),
    "svd": (lambda: linalg.svd(cresset.full((2, 2), math.nan)), "non-finite values"),
    "pinv": (lambda: linalg.pinv(cresset.full((2, 2), math.nan)), "linalg.svd: .* non-finite values"),
    "lstsq": (
        lambda: linalg.lstsq(cresset.tensor([[1.0, 1.0], [0.0, 0.0]]), cresset.ones(2, 1), driver="gels"),
        "does not have full rank",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_matrix_without_an_answer_is_a_linalg_error(name):
    call, phrase = FAILURES[name]
    with pytest.raises(linalg.LinAlgError, match=phrase):
        call()
    assert issubclass(linalg.LinAlgError, RuntimeError)


MISTAKES = {
    "a vector": (lambda: linalg.inv(cresset.ones(3)), "linalg.inv: The input tensor A must have at least 2 dimensions"),
    "not square": (lambda: linalg.det(cresset.ones(2, 3)), "must be batches of square matrices, but they are 2 by 3"),
    "integers": (
        lambda: linalg.svd(cresset.ones(2, 2, dtype=cresset.int64)),
        "floating point or complex tensor as input",
    ),
    "half": (lambda: linalg.qr(cresset.ones(2, 2, dtype=cresset.float16)), "Low precision dtypes not supported"),
    "two dtypes": (lambda: linalg.solve(cresset.eye(2), cresset.ones(2).double()), "to have the same dtype"),
    "sizes": (lambda: linalg.solve(cresset.eye(2), cresset.ones(3, 1)), r"AX = B \(2x2 and 3x1\)"),
    "batches": (lambda: linalg.solve(cresset.ones(2, 2, 2), cresset.ones(3, 2, 1)), "broadcast"),
    "qr mode": (lambda: linalg.qr(cresset.eye(2), mode="full"), "unrecognized mode 'full'"),
    "UPLO": (lambda: linalg.eigh(cresset.eye(2), UPLO="X"), "UPLO argument to be 'L' or 'U'"),
    "norm order": (lambda: linalg.matrix_norm(cresset.eye(2), 3), "Order 3 not supported"),
    "pivots of another size": (
        lambda: linalg.lu_solve(cresset.eye(2), cresset.ones(3, dtype=cresset.int32), cresset.ones(2, 1)),
        "Number of pivots",
    ),
    "pivots out of range": (
        lambda: linalg.lu_solve(cresset.eye(2), cresset.full((2,), 9, dtype=cresset.int32), cresset.ones(2, 1)),
        "between 1 and 2",
    ),
    "unpacked pivots out of range": (
        lambda: cresset.lu_unpack(cresset.eye(2), cresset.full((2,), 9, dtype=cresset.int32)),
        "between 1 and 2",
    ),
    "eig of nan": (lambda: linalg.eig(cresset.full((2, 2), math.nan)), "should not contain infs or NaNs"),
    "driver": (lambda: linalg.lstsq(cresset.eye(2), cresset.ones(2, 1), driver="best"), "parameter `driver`"),
    "lstsq sizes": (lambda: linalg.lstsq(cresset.eye(2), cresset.ones(3, 1)), "should match other.size"),
    "tau longer than the columns": (
        lambda: linalg.householder_product(cresset.ones(3, 2), cresset.ones(3)),
        "must be greater than or equal to tau.shape",
    ),
    "removed": (lambda: cresset.symeig(cresset.eye(2)), "now removed"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_call_is_named(name):
    call, phrase = MISTAKES[name]
    with pytest.raises(RuntimeError, match=phrase):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: linalg.solve(cresset.eye(2), 3),
        lambda: linalg.solve(cresset.eye(2), B=3),
        lambda: linalg.matrix_norm([[1.0]]),
        lambda: linalg.matrix_exp(1.0),
        lambda: linalg.matrix_power(cresset.eye(2), 1.5),
        lambda: linalg.solve_triangular(cresset.eye(2), cresset.ones(2, 1)),
    ],
)
def test_an_argument_of_another_type_is_a_type_error(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.cpu_only("LAPACK's library")
def test_without_lapack_the_package_to_install_is_named_and_small_matrices_need_none():
    program = """
from cresset import eye, linalg
from cresset.linalg import lapack

lapack.places = lambda: []
print(linalg.inv(2 * eye(2)).tolist())
for call in (linalg.eigvalsh, lambda A: linalg.inv(eye(100))):
    try:
        call(eye(2))
    except RuntimeError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    inverse, *errors = done.stdout.splitlines()
    assert inverse == "[[0.5, 0.0], [0.0, 0.5]]" and len(errors) == 2
    assert all("pip install scipy-openblas64" in error for error in errors)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)])
def test_the_largest_norm_of_an_empty_matrix_is_zero(sizes):
    empty = cresset.zeros(*sizes)
    assert [linalg.matrix_norm(empty, order).item() for order in (1, 2, math.inf, "fro", "nuc")] == [0] * 5
    assert linalg.matrix_norm(empty, 2, keepdim=True).shape == (1, 1)


def test_the_exponential_of_one_number_is_that_of_the_number():
    x = cresset.tensor([[[3.7192366]], [[5.3437643]]])
    assert (cresset.matrix_exp(x) == x.exp()).all()


@pytest.mark.parametrize(
    "call, name, dtypes",
    [
        (lambda out: linalg.cholesky(cresset.eye(2), out=out), "result", "from Float dtype, .* with dtype Int"),
        (lambda out: linalg.eigvals(cresset.eye(2), out=out), "eigenvalues", "from ComplexFloat dtype"),
        (lambda out: linalg.eig(cresset.eye(2), out=(out, out)), "eigenvalues", "with dtype Int"),
        (lambda out: linalg.tensorinv(cresset.eye(4).reshape(2, 2, 4), out=out), "result", "with dtype Int"),
    ],
)
def test_an_out_that_cannot_hold_the_result_is_named(call, name, dtypes):
    with pytest.raises(RuntimeError, match=f"Expected {name} to be safely castable .*{dtypes}.* but got int instead"):
        call(cresset.empty(0, dtype=cresset.int32))


def test_lstsq_takes_vectors_only_where_they_fit():
    with pytest.raises(RuntimeError, match=r"input.size\(-2\) should match other.size\(-1\)"):
        linalg.lstsq(cresset.ones(2, 3), cresset.ones(3))
    with pytest.raises(RuntimeError, match=r"input.size\(-2\) should match other.size\(-2\)"):
        linalg.lstsq(cresset.ones(1, 1, 1), cresset.ones(3, 1))  # not three vectors for one matrix
    with pytest.raises(RuntimeError, match="input must have at least 2 dimensions"):
        linalg.lstsq(cresset.ones(3), cresset.ones(3))
    assert linalg.lstsq(cresset.eye(2), cresset.tensor([1.0, 2.0])).solution.tolist() == [1.0, 2.0]


def test_cholesky_names_the_matrix_of_a_batch_whose_pivot_is_nan():
    batch = cresset.eye(3).repeat(3, 1, 1)
    batch[1, 1, 1] = math.nan
    assert linalg.cholesky_ex(batch).info.tolist() == [0, 2, 0]
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\).*leading minor of order 2"):
        linalg.cholesky(batch, upper=True)


def test_eigenvalues_are_cast_to_an_out_that_holds_them():
    out = cresset.empty(0, dtype=cresset.complex128)
    assert linalg.eigvals(cresset.eye(2), out=out) is out and out.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Expected eigenvalues to be safely castable from ComplexFloat dtype"):
        linalg.eigvals(cresset.eye(2), out=cresset.empty(0))


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128])
@pytest.mark.parametrize(
    "laid", [lambda a: a, lambda a: a.mT, lambda a: a.mH, lambda a: a.conj(), lambda a: a[::2], lambda a: a.flip(-1)]
)
def test_a_triangle_is_solved_for_however_it_lies(dtype, laid):
    a = laid(cresset.randn(4, 5, 5, dtype=dtype) + 4 * cresset.eye(5, dtype=dtype))
    b, c = cresset.randn(len(a), 5, 2, dtype=dtype), cresset.randn(len(a), 2, 5, dtype=dtype)
    for upper in (True, False):
        triangle = a.triu() if upper else a.tril()
        unit = (a.triu(1) if upper else a.tril(-1)) + cresset.eye(5, dtype=dtype)
        cresset.testing.assert_close(triangle @ linalg.solve_triangular(a, b, upper=upper), b)
        cresset.testing.assert_close(linalg.solve_triangular(a, c, upper=upper, left=False) @ triangle, c)
        cresset.testing.assert_close(unit @ linalg.solve_triangular(a, b, upper=upper, unitriangular=True), b)


def test_the_older_forms_take_the_names_of_arguments_that_pytorch_s_parser_has():
    A, b, pivots = cresset.tensor([[2.0]]), cresset.tensor([[8.0]]), cresset.ones(1, dtype=cresset.int32)
    assert cresset.cholesky_solve(b, input2=A).item() == 2
    assert cresset.lu_solve(input=b, LU_data=A, LU_pivots=pivots).item() == 4
    assert cresset.triangular_solve(input=b, A=A).solution.item() == 4
    assert cresset.orgqr(A, input2=cresset.ones(1)).item() == 0
    assert cresset.ormqr(A, input2=cresset.zeros(1), input3=b).item() == 8
    assert cresset.smm(A.to_sparse(), mat2=b).to_dense().item() == 16


@pytest.mark.parametrize("factor", [linalg.lu, linalg.lu_factor, linalg.lu_factor_ex])
def test_whether_rows_are_exchanged_is_a_bool(factor):
    with pytest.raises(TypeError, match="argument 'pivot' must be bool, not list"):
        factor(cresset.eye(2), pivot=[0])


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_numbers_whose_squares_have_no_room_are_factorized(size):
    A = cresset.tensor([[3.0, 1.0], [4.0, 2.0]], dtype=cresset.float64)
    Q, R = linalg.qr(size * A)
    assert close(Q @ (R / size), A, 1e-12) and close(Q.mT @ Q, cresset.eye(2, dtype=Q.dtype), 1e-12)
    assert close(R.abs() / size, cresset.tensor([[5.0, 2.2], [0.0, 0.4]], dtype=Q.dtype), 1e-12)


def test_a_batch_gives_what_its_matrices_give_whatever_the_threads():
    before = cresset.get_num_threads()
    A = cresset.randn(300, 24, 24)
    try:
        found = []
        for threads in (1, 2):
            cresset.set_num_threads(threads)
            found.append([*linalg.qr(A), *linalg.lu_factor(A), linalg.cholesky(A @ A.mT + cresset.eye(24))])
    finally:
        cresset.set_num_threads(before)
    assert all(one.equal(other) for one, other in zip(*found, strict=True))
    assert linalg.qr(A[7]).Q.equal(found[0][0][7])


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16, cresset.int64, cresset.bool], ids=str)
def test_lu_unpack_moves_numbers_of_any_dtype(dtype):
    factors, pivots = cresset.tensor([[2, 1], [1, 3]]).to(dtype), cresset.tensor([2, 2], dtype=cresset.int32)
    P, L, U = cresset.lu_unpack(factors, pivots)
    one, two, three = (cresset.tensor(number).to(dtype).item() for number in (1, 2, 3))
    assert (
        P.tolist() == [[0, 1], [1, 0]] and L.tolist() == [[1, 0], [one, 1]] and U.tolist() == [[two, one], [0, three]]
    )
    assert P.dtype == L.dtype == U.dtype == dtype
    assert cresset.lu_unpack(factors, pivots.long(), unpack_pivots=False)[1].equal(L)
