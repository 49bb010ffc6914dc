"""lobpcg: a few extreme eigenpairs, by products with the matrix."""

import pytest

import cresset


def symmetric(*shape, dtype=cresset.float64):
    a = cresset.rand(*shape, dtype=dtype, generator=cresset.Generator().manual_seed(0))
    return a @ a.mH


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.complex128])
@pytest.mark.parametrize("largest", [True, False, None])
@pytest.mark.parametrize("shape", [(20, 20), (2, 3, 12, 12)])
def test_the_pairs_are_those_of_the_whole_decomposition(shape, largest, dtype):
    A = symmetric(*shape, dtype=dtype)
    E, X = cresset.lobpcg(A, k=3, largest=largest)
    values = cresset.linalg.eigvalsh(A)
    expected = values[..., :3] if largest is False else values.flip(-1)[..., :3]
    close = 1e-3 if dtype == cresset.float32 else 1e-6
    assert cresset.allclose(E, expected, atol=close) and X.shape == (*shape[:-1], 3)
    assert cresset.allclose(A @ X, X * E[..., None, :].to(dtype), atol=close * 10)
    assert cresset.allclose(X.mH @ X, cresset.eye(3, dtype=dtype).expand(*shape[:-2], 3, 3), atol=close)


def test_a_sparse_matrix_a_second_one_and_a_preconditioner():
    A, B = symmetric(15, 15), symmetric(15, 15) + cresset.eye(15, dtype=cresset.float64)
    E, X = cresset.lobpcg(A.to_sparse(), k=2, B=B, iK=cresset.linalg.inv(A + B), X=cresset.eye(15, 2).double())
    assert cresset.allclose(A @ X, B @ X * E)
    whole, _ = cresset.linalg.eigh(cresset.linalg.inv(cresset.linalg.cholesky(B)) @ A @ cresset.linalg.inv(
        cresset.linalg.cholesky(B)).mT)  # fmt: skip
    assert cresset.allclose(E, whole.flip(0)[:2])


def test_more_vectors_may_be_iterated_than_asked_for_and_fewer_steps_made():
    A = cresset.diag(cresset.arange(1.0, 13.0, dtype=cresset.float64))
    E, X = cresset.lobpcg(A, k=1, n=3)
    assert E.shape == (1,) and X.shape == (12, 1) and E.item() == pytest.approx(12)
    rough = cresset.lobpcg(A, X=cresset.ones(12, 1).double(), niter=1)[0]
    assert rough.item() < 12 - 1e-3
    assert cresset.lobpcg(A, X=cresset.ones(12, 1).double(), tol=10.0)[0].item() == pytest.approx(6.5)


def test_the_gradient_is_that_of_symmetric_matrices():
    A = symmetric(6, 6).requires_grad_()
    B = (symmetric(6, 6) + cresset.eye(6, dtype=cresset.float64)).requires_grad_()

    def values_and_projections(A, B=None):
        E, X = cresset.lobpcg(A, k=2, B=B)
        return E, X[:, :1] @ X[:, :1].mT

    assert cresset.autograd.gradcheck(values_and_projections, (A,))
    assert cresset.autograd.gradcheck(values_and_projections, (A, B))
    (grad,) = cresset.autograd.grad(values_and_projections(A)[1].sum(), A)
    assert cresset.allclose(grad, grad.mT)


def test_what_cannot_be_iterated_is_refused():
    eye = cresset.eye(4)
    with pytest.raises(ValueError, match="number of A rows \\(=4\\) is smaller than 3 x"):
        cresset.lobpcg(eye, k=2)
    with pytest.raises(IndexError, match=r"A must be a matrix or a batch of matrices, got shape torch.Size\(\[3\]\)"):
        cresset.lobpcg(cresset.ones(3))
    with pytest.raises(AssertionError, match="A must be square"):
        cresset.lobpcg(cresset.ones(4, 5))
    with pytest.raises(AssertionError, match="X shape mismatch"):
        cresset.lobpcg(eye, X=cresset.ones(3, 1))
    with pytest.raises(ValueError, match="'basic' or 'ortho'"):
        cresset.lobpcg(eye, method="other")
    with pytest.raises(NotImplementedError, match="tracker"):
        cresset.lobpcg(eye, tracker=print)
    with pytest.raises(ValueError, match="a sparse A has no gradient"):
        cresset.lobpcg(eye.to_sparse().requires_grad_())
