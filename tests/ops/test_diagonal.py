"""Diagonals: matrices made of them, and writing them."""

import cresset


def test_diag_goes_both_ways():
    x = cresset.tensor([1, 2])
    assert cresset.diag(cresset.diag(x, 1), 1).tolist() == [1, 2]
    assert cresset.diag(x, -1).tolist() == [[0, 0, 0], [1, 0, 0], [0, 2, 0]]


def test_diag_of_a_matrix_is_a_copy():
    x = cresset.zeros(2, 2)
    x.diag().fill_(5)
    assert x.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_diag_embed_into_chosen_dimensions():
    result = cresset.diag_embed(cresset.ones(3, 2), dim1=0, dim2=2)
    assert result.shape == (2, 3, 2)
    assert result.diagonal(0, 0, 2).tolist() == [[1.0, 1.0]] * 3


def test_gradient_of_diag_embed_is_the_diagonal():
    x = cresset.ones(2, requires_grad=True)
    (cresset.diag_embed(x) * cresset.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_fill_diagonal_wraps_in_tall_matrices():
    assert cresset.zeros(4, 2).fill_diagonal_(1).sum().item() == 2
    assert cresset.zeros(4, 2).fill_diagonal_(1, wrap=True).tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
