"""Embeddings and bags of them: what is refused, what is differentiated, and gradients that are the program's own."""

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F

WEIGHT = cresset.arange(8.0).view(4, 2)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index", [-1, 4])
@pytest.mark.parametrize("padding_idx", [None, 0])
def test_a_bag_refuses_rows_that_there_are_none_of(mode, index, padding_idx):
    with pytest.raises(RuntimeError, match=f"Expected idx >= 0 && idx < num_embeddings but found idx to be {index}"):
        F.embedding_bag(cresset.tensor([[index, 1]]), WEIGHT, mode=mode, padding_idx=padding_idx)


@pytest.mark.parametrize("padding_idx", [-5, 4])
def test_a_bag_refuses_padding_outside_of_the_table(padding_idx):
    with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings, -4 through 3"):
        F.embedding_bag(cresset.tensor([[1]]), WEIGHT, padding_idx=padding_idx)


def test_weights_of_samples_have_the_dtype_of_the_table():
    with pytest.raises(RuntimeError, match="same type as"):
        F.embedding_bag(cresset.tensor([[1]]), WEIGHT, mode="sum", per_sample_weights=cresset.ones(1, 1).double())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_offsets_that_are_only_the_last_one_make_no_bag(mode):
    bags = F.embedding_bag(cresset.tensor([0, 1]), WEIGHT, cresset.tensor([0]), mode=mode, include_last_offset=True)
    assert bags.shape == (0, 2)


def test_a_limited_norm_is_no_part_of_what_is_differentiated_forward():
    with cresset.autograd.forward_ad.dual_level():
        weight = cresset.autograd.forward_ad.make_dual(cresset.full((2, 2), 3.0), cresset.ones(2, 2))
        rows = F.embedding(cresset.tensor([0, 1, 1]), weight, max_norm=1.0)
        value, tangent = cresset.autograd.forward_ad.unpack_dual(rows)
    assert tangent.tolist() == [[1.0, 1.0]] * 3
    cresset.testing.assert_close(value.norm(dim=1), cresset.ones(3))


def test_a_sparse_gradient_keeps_its_indices_when_the_program_changes_its_own():
    layer, rows = nn.Embedding(5, 2, sparse=True), cresset.tensor([1, 2])
    layer(rows).sum().backward()
    rows[0] = 4
    assert layer.weight.grad._indices().tolist() == [[1, 2]]


@pytest.mark.parametrize("size, rows", [((10, 0), [0, 2]), ((0, 0), [])])
def test_a_sparse_gradient_may_have_no_columns(size, rows):
    layer = nn.Embedding(*size, sparse=True)
    layer(cresset.tensor(rows, dtype=cresset.int64)).sum().backward()
    assert layer.weight.grad.is_sparse and layer.weight.grad.shape == size
