"""Distances between vectors, and vectors brought within a norm."""

import pytest

import cresset


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
