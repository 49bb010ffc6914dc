"""Distances between vectors, and vectors brought within a norm."""

import io
import warnings

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

NORMS = [0, 0.5, 1, 1.5, 2, 3, float("inf")]


def points(*shape, seed=0):
    generator = cresset.Generator().manual_seed(seed)
    x = cresset.rand(*shape, dtype=cresset.float64, generator=generator, device="cpu")
    return x.to(cresset.get_default_device())


def by_differences(x1, x2, p):
    return cresset.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@pytest.fixture
def only_kernels():
    """With `--device cuda`, what has no kernel there is an error and not computed on the CPU."""
    cresset._native.cuda.refuse_host(True)
    yield
    cresset._native.cuda.refuse_host(False)


@pytest.mark.parametrize("p", NORMS)
class TestCdist:
    """More points than a tile has, more coordinates than are read at a time, and a rest of both."""

    @pytest.mark.kernels
    @pytest.mark.parametrize("shapes", [((1, 1), (1, 1)), ((3, 40, 5), (3, 70, 5)), ((70, 300), (33, 300))], ids=str)
    def test_is_the_norm_of_each_difference(self, p, shapes, only_kernels):
        x1, x2 = (points(*shape, seed=i) for i, shape in enumerate(shapes))
        expected = by_differences(x1.cpu(), x2.cpu(), p)
        cresset.testing.assert_close(cresset._cdist(x1, x2, p).cpu(), expected)
        cresset.testing.assert_close(cresset._cdist(x1.mT.contiguous().mT, x2, p).cpu(), expected)
        found = cresset._cdist(x1.float(), x2.float(), p)
        assert found.dtype == cresset.float32
        cresset.testing.assert_close(found.cpu(), expected.float(), rtol=1e-4, atol=1e-5)

    @pytest.mark.kernels
    def test_the_gradient_is_that_of_the_norm_of_each_difference(self, p, only_kernels):
        x1, x2, grad = points(2, 20, 5), points(2, 30, 5, seed=1), points(2, 20, 30, seed=2)
        found = cresset._cdist_backward(grad, x1, x2, p, cresset._cdist(x1, x2, p))
        a = x1.cpu().requires_grad_()
        if p:  # a count has no slope
            by_differences(a, x2.cpu(), p).backward(grad.cpu())
        cresset.testing.assert_close(found.cpu(), a.grad if p else cresset.zeros_like(found, device="cpu"))

    def test_both_derivatives_agree_with_finite_differences(self, p):
        x1, x2 = points(2, 3, 4).requires_grad_(), points(2, 2, 4, seed=1).requires_grad_()
        assert gradcheck(lambda a, b: cresset._cdist(a, b, p), (x1, x2))
        assert gradgradcheck(lambda a, b: cresset._cdist(a, b, p), (x1, x2))

    def test_the_slope_at_a_distance_of_zero_is_zero(self, p):
        x = points(3, 4)
        a = x.clone().requires_grad_()
        cresset._cdist(a, x, p).diagonal().sum().backward()
        assert a.grad.tolist() == cresset.zeros(3, 4).tolist()

    def test_vmap_computes_the_whole_batch_at_once(self, p):
        x1, x2 = points(5, 3, 4), points(2, 4, seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # sample by sample would warn
            found = cresset.vmap(lambda a: cresset._cdist(a, x2, p))(x1)
        cresset.testing.assert_close(found, cresset._cdist(x1, x2.expand(5, 2, 4), p))

    def test_is_exported(self, p):
        class Distances(cresset.nn.Module):
            def forward(self, a, b):
                return cresset.cdist(a, b, p)

        file = io.BytesIO()
        cresset.onnx.export(Distances(), (points(3, 4).cpu(), points(2, 4).cpu()), file)
        kind = {0: b"Sign", 1: b"ReduceL1", 2: b"ReduceL2", float("inf"): b"ReduceMax"}.get(p, b"Pow")
        assert kind in file.getvalue()

    def test_points_without_coordinates_or_without_others(self, p):
        assert cresset.cdist(cresset.ones(2, 0), cresset.ones(3, 0), p).tolist() == [[0.0] * 3] * 2
        assert cresset.cdist(cresset.ones(2, 4), cresset.ones(0, 4), p).shape == (2, 0)

    def test_nan_is_at_no_distance(self, p):
        x = cresset.tensor([[float("nan"), 1.0], [1.0, float("nan")], [1.0, 1.0]])
        assert cresset.cdist(x, cresset.zeros(1, 2), p).isnan().tolist() == [[True], [True], [False]]


def test_leading_dimensions_of_cdist_broadcast():
    x1, x2 = points(2, 1, 3, 4), points(5, 2, 4, seed=1)
    cresset.testing.assert_close(cresset.cdist(x1, x2, 1), by_differences(x1, x2, 1))
    with pytest.raises(RuntimeError, match="at least 2D tensors, X1 got: 1D"):
        cresset.cdist(cresset.ones(3), cresset.ones(2, 3))
    with pytest.raises(RuntimeError, match="the same number of columns. X1: 4 X2: 3"):
        cresset.cdist(cresset.ones(3, 4), cresset.ones(3, 3))
    with pytest.raises(RuntimeError, match="floating-point dtypes, X2 got"):
        cresset.cdist(cresset.ones(3, 4), cresset.ones(3, 4, dtype=cresset.int64))
    with pytest.raises(RuntimeError, match="non-negative p values, got -1"):
        cresset.cdist(cresset.ones(3, 4), cresset.ones(3, 4), -1)


@pytest.mark.parametrize("p", [0, 1, 2, 3, float("inf")])
def test_all_ways_to_a_distance_agree(p):
    x = cresset.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], dtype=cresset.float64)
    matrix, pairs = cresset.cdist(x, x, p), cresset.pdist(x, p)
    assert cresset.allclose(pairs, matrix[[0, 0, 1], [1, 2, 2]])
    assert cresset.allclose(cresset.dist(x[0], x[1], p), matrix[0, 1])


def test_euclidean_distances_by_matrix_product_have_a_gradient_at_zero():
    x = cresset.arange(60, dtype=cresset.float64).reshape(30, 2).requires_grad_()
    distance = cresset.cdist(x, x)
    assert cresset.allclose(distance, cresset.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"), atol=1e-6)
    distance.sum().backward()
    assert x.grad.isfinite().all()


def test_renorm_shrinks_only_long_rows():
    x = cresset.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert cresset.allclose(x.renorm(2, 0, 1.0), cresset.tensor([[0.6, 0.8], [0.3, 0.4]]))


def test_the_norm_except_a_dimension_keeps_that_dimension_in_its_place():
    v = cresset.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert cresset.norm_except_dim(v).tolist() == [[5.0], [10.0]]
    assert cresset.norm_except_dim(v, 1, 1).tolist() == [[9.0, 12.0]]
    assert cresset.norm_except_dim(v, dim=-2).tolist() == [[5.0], [10.0]]
    assert cresset.norm_except_dim(v, dim=-1).item() == v.norm().item()
    assert cresset.norm_except_dim(cresset.ones(2, 3, 4), 2, 1).shape == (1, 3, 1)
    with pytest.raises(IndexError, match="out of range"):
        cresset.norm_except_dim(v, 2, 2)


@pytest.mark.parametrize("dtype", [cresset.int64, cresset.bool, cresset.complex64])
def test_distances_are_between_real_numbers(dtype):
    for pair in (
        (cresset.ones(30, 2).to(dtype), cresset.ones(30, 2)),
        (cresset.ones(2, 2), cresset.ones(2, 2).to(dtype)),
    ):
        with pytest.raises(RuntimeError, match="only supports floating-point"):
            cresset.cdist(*pair)


@pytest.mark.parametrize("p", [0, 1, 2, 3, float("inf")])
@pytest.mark.parametrize("threads", [1, 2])
def test_points_among_themselves_are_as_far_apart_as_from_a_copy(p, threads):
    x, before = points(2, 151, 5).float(), cresset.get_num_threads()
    cresset.set_num_threads(threads)
    try:
        assert cresset.equal(cresset._cdist(x, x, p), cresset._cdist(x, x.clone(), p))
    finally:
        cresset.set_num_threads(before)
