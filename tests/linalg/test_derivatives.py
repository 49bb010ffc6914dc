"""Each differentiable function of linalg agrees with finite differences: backward, forward and twice, real and
complex."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

linalg = cresset.linalg


def matrix(*shape, dtype=cresset.float64):
    cresset.manual_seed(sum(shape))
    return cresset.randn(*shape, dtype=dtype).requires_grad_()


def spread(n, dtype):
    """A square matrix whose eigenvalues and singular values lie well apart."""
    return (
        matrix(n, n, dtype=dtype).detach() / 4 + cresset.diag(cresset.arange(1.0, n + 1).to(dtype))
    ).requires_grad_()


def hermitian(A):
    return A + A.mH


def positive(A):
    return A @ A.mH + cresset.eye(A.size(-1), dtype=A.dtype)


# name -> (function of the inputs, shapes of the inputs; "spread" is a matrix with values well apart)
CASES = {
    "inv": (linalg.inv, ["spread"]),
    "inv of a batch": (linalg.inv, [(2, 3, 3)]),
    "solve": (linalg.solve, ["spread", (3, 2)]),
    "solve with a vector": (linalg.solve, ["spread", (3,)]),
    "solve on the right": (lambda A, B: linalg.solve(A, B, left=False), ["spread", (2, 3)]),
    "solve with a broadcast matrix": (linalg.solve, ["spread", (2, 3, 2)]),
    "solve_triangular": (lambda A, B: linalg.solve_triangular(A, B, upper=True), ["spread", (3, 2)]),
    "solve_triangular on the right": (
        lambda A, B: linalg.solve_triangular(A, B, upper=False, left=False, unitriangular=True),
        ["spread", (2, 3)],
    ),
    "det": (linalg.det, ["spread"]),
    "slogdet": (lambda A: linalg.slogdet(A).logabsdet, ["spread"]),
    "logdet": (lambda A: cresset.logdet(positive(A)), ["spread"]),
    "cholesky": (lambda A: linalg.cholesky(positive(A)), ["spread"]),
    "cholesky, upper": (lambda A: linalg.cholesky(positive(A), upper=True), ["spread"]),
    "cholesky_inverse": (lambda A: cresset.cholesky_inverse(linalg.cholesky(positive(A))), ["spread"]),
    "cholesky_solve": (lambda A, B: cresset.cholesky_solve(B, linalg.cholesky(positive(A))), ["spread", (3, 2)]),
    "lu, square": (lambda A: linalg.lu(A)[1:], ["spread"]),
    "lu, wide": (lambda A: linalg.lu(A)[1:], [(2, 4)]),
    "lu, tall": (lambda A: linalg.lu(A)[1:], [(4, 2)]),
    "lu_solve": (lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B), ["spread", (3, 2)]),
    "lu_solve, adjoint on the right": (
        lambda A, B: linalg.lu_solve(*linalg.lu_factor(A), B, left=False, adjoint=True),
        ["spread", (2, 3)],
    ),
    "qr, square": (lambda A: linalg.qr(A), ["spread"]),
    "qr, wide": (lambda A: linalg.qr(A), [(2, 4)]),
    "qr, tall": (lambda A: linalg.qr(A), [(4, 2)]),
    "svdvals": (linalg.svdvals, [(3, 2)]),
    "svd, tall": (lambda A: [part.abs() for part in linalg.svd(A, full_matrices=False)], [(4, 2)]),
    "svd, wide": (lambda A: [part.abs() for part in linalg.svd(A, full_matrices=False)], [(2, 4)]),
    "svd, square": (lambda A: [part.abs() for part in linalg.svd(A)], ["spread"]),
    "eigh": (lambda A: [part.abs() for part in linalg.eigh(hermitian(A))], ["spread"]),
    "eigvalsh": (lambda A: linalg.eigvalsh(hermitian(A)), ["spread"]),
    "eig": (lambda A: [part.abs() for part in linalg.eig(A)], ["spread"]),
    "pinv, tall": (linalg.pinv, [(4, 2)]),
    "pinv, wide": (linalg.pinv, [(2, 4)]),
    "lstsq, tall": (lambda A, B: linalg.lstsq(A, B, driver="gels")[:2], [(4, 2), (4, 3)]),
    "lstsq, wide": (lambda A, B: linalg.lstsq(A, B).solution, [(2, 4), (2, 3)]),
    "householder_product": (lambda A: linalg.householder_product(A, A[0, :2] / 3), [(4, 3)]),
    "ormqr": (lambda A, C: cresset.ormqr(A, A[0] / 3, C, left=False, transpose=True), [(4, 3), (2, 4)]),
    "matrix_exp": (linalg.matrix_exp, ["spread"]),
    "matrix_power": (lambda A: linalg.matrix_power(A, -3), ["spread"]),
    "matrix_norm nuc": (lambda A: linalg.matrix_norm(A, "nuc"), ["spread"]),
    "matrix_norm -2": (lambda A: linalg.matrix_norm(A, -2), ["spread"]),
    "cond": (linalg.cond, ["spread"]),
    "vander": (lambda x: linalg.vander(x, N=4), [(3,)]),
    "multi_dot": (lambda *chain: linalg.multi_dot(chain), [(2, 3), (3, 1), (1, 4)]),
    "cross": (linalg.cross, [(2, 3), (1, 3)]),
    "vecdot": (linalg.vecdot, [(2, 3), (3,)]),
}


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_derivative_agrees_with_finite_differences(name, dtype):
    function, shapes = CASES[name]
    inputs = tuple(spread(3, dtype) if shape == "spread" else matrix(*shape, dtype=dtype) for shape in shapes)

    def outputs(*inputs):
        result = function(*inputs)
        return tuple(result) if isinstance(result, (tuple, list)) else result

    assert gradcheck(outputs, inputs, check_forward_ad=True)
    assert gradgradcheck(outputs, inputs)


def test_the_gradient_of_matrix_exp_is_precise_however_large_the_gradient_is_that_comes_in():
    A = cresset.tensor([[1.0, 9.0, -3.0], [2.0, 4.0, 8.0], [0.5, -7.0, 6.0]], requires_grad=True)
    for size in (1e-30, 1e-3, 1.0, 1e6, 1e30):
        incoming = size * cresset.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0], [2.0, 2.0, 1.0]])
        (grad,) = cresset.autograd.grad(linalg.matrix_exp(A), A, incoming)
        (exact,) = cresset.autograd.grad(linalg.matrix_exp(double := A.double()), double, incoming.double())
        assert (grad - exact).abs().max() < 1e-5 * exact.abs().max()
    (none,) = cresset.autograd.grad(linalg.matrix_exp(A), A, cresset.zeros(3, 3))
    assert none.tolist() == [[0.0] * 3] * 3


def test_the_older_cholesky_of_no_elements_keeps_the_graph():
    for shape in ((0, 0), (0, 5, 5), (2, 0, 0)):
        A = cresset.empty(shape, requires_grad=True)
        L = cresset.cholesky(A)
        assert L.requires_grad and L.shape == A.shape
        L.sum().backward()
        assert A.grad.shape == A.shape


def test_det_of_a_singular_matrix_has_the_cofactors_for_its_gradient():
    A = cresset.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=cresset.float64, requires_grad=True)
    linalg.det(A).backward()
    assert cresset.allclose(A.grad, cresset.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=cresset.float64))


def test_det_of_a_singular_matrix_can_be_differentiated_twice():
    # det = ad - bc: the derivative of the gradient (d, -c, -b, a) along d is (1, 0, 0, 0).
    A = cresset.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=cresset.float64, requires_grad=True)
    (first,) = cresset.autograd.grad(linalg.det(A), A, create_graph=True)
    (second,) = cresset.autograd.grad(first[0, 0], A)
    assert cresset.allclose(second, cresset.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=cresset.float64))


def test_the_unread_triangle_has_no_gradient_in_solve_triangular():
    A = matrix(3, 3)
    linalg.solve_triangular(A, cresset.ones(3, 1, dtype=cresset.float64), upper=True).sum().backward()
    assert A.grad.tril(-1).abs().max() == 0


@pytest.mark.parametrize(
    "function, phrase",
    [
        (lambda A: linalg.qr(A, mode="complete"), "not differentiable when mode='complete'"),
        (lambda A: linalg.qr(A, mode="r"), "depends on Q"),
    ],
)
def test_qr_says_which_modes_have_no_derivative(function, phrase):
    A = matrix(3, 2)
    with pytest.raises(RuntimeError, match=phrase):
        function(A)[1].sum().backward()


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_a_loss_that_depends_on_the_phase_of_complex_vectors_is_refused(name):
    A = spread(3, cresset.complex128)
    results = getattr(linalg, name)(hermitian(A) if name == "eigh" else A)
    loss = sum(part.imag.sum() for part in results if part.ndim == 2 and part.is_complex())
    with pytest.raises(RuntimeError, match="ill-defined"):
        loss.backward()


def test_residuals_that_are_not_given_have_no_part_in_the_gradient_of_lstsq():
    A, B = matrix(5, 2), matrix(5, 3)
    found = linalg.lstsq(A, B)
    assert found.residuals.shape == (0,)
    (found.solution.sum() + found.residuals.sum()).backward()
    both = A.grad, B.grad
    A.grad = B.grad = None
    linalg.lstsq(A, B).solution.sum().backward()
    assert A.grad.equal(both[0]) and B.grad.equal(both[1])
