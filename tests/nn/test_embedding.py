"""Embeddings and bags of them: what is refused, what is differentiated, and gradients that are the program's own."""

from math import nan

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


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_nothing_have_a_gradient_of_zeros(mode):
    table = WEIGHT.clone().requires_grad_()
    F.embedding_bag(cresset.zeros(2, 0, dtype=cresset.int64), table, mode=mode).sum().backward()
    assert table.grad.equal(cresset.zeros(4, 2))


WORDS, STARTS = cresset.tensor([1, 0, 3, 3, 2, 1, 0]), cresset.tensor([0, 2, 2, 6])  # the second bag is empty


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.float32, cresset.float64])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_between_offsets_are_the_sums_of_their_rows_one_by_one(mode, width, dtype):
    table = (cresset.arange(4 * width) % 7).to(dtype).view(4, width).requires_grad_()
    bags = F.embedding_bag(WORDS, table, STARTS, mode=mode)
    rows = [table[[1, 0]], table[:0], table[[3, 3, 2, 1]], table[[0]]]
    each = [r.sum(0) if mode == "sum" or not len(r) else r.mean(0) for r in rows]
    cresset.testing.assert_close(bags, cresset.stack(each))
    share = cresset.tensor([1.0, 2.0, 3.0, 4.0], dtype=dtype).unsqueeze(1).expand_as(bags)
    found, wanted = (cresset.autograd.grad(b, table, share)[0] for b in (bags, cresset.stack(each)))
    cresset.testing.assert_close(found, wanted)


@pytest.mark.parametrize("bag, largest, counted", [
    ([2, 3, 0], [3.0, 5.0], [[0, 0], [0, 0], [1, 1], [0, 0]]),
    ([3, 2], [3.0, 5.0], [[0, 0], [0, 0], [0, 1], [1, 0]]),  # the first of two equal ones
    ([1, 0, 2], [nan, 5.0], [[0, 0], [1, 0], [0, 1], [0, 0]]),
    ([2, 1], [3.0, 5.0], [[0, 0], [0, 0], [1, 1], [0, 0]]),  # a later nan is not larger
])  # fmt: skip
def test_the_first_of_the_largest_of_a_bag_has_the_gradient(bag, largest, counted):
    table = cresset.tensor([[1.0, 0.0], [nan, 2.0], [3.0, 5.0], [3.0, 1.0]], requires_grad=True)
    found = F.embedding_bag(cresset.tensor(bag), table, cresset.tensor([0, len(bag)]), mode="max")
    cresset.testing.assert_close(found, cresset.tensor([largest, [0.0, 0.0]]), equal_nan=True)
    found.sum().backward()
    assert table.grad.tolist() == counted


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_what_lies_behind_the_last_offset_is_in_no_bag(mode):
    ends, table = cresset.cat([STARTS, cresset.tensor([6])])[:-1], WEIGHT.clone().requires_grad_()
    bags = F.embedding_bag(WORDS, table, ends, mode=mode, include_last_offset=True)
    assert bags.equal(F.embedding_bag(WORDS[:6], WEIGHT, STARTS[:3], mode=mode))
    bags.sum().backward()
    assert table.grad[0].tolist() == ([1, 1] if mode == "sum" else [0.5, 0.5])  # the last word, a zero, does not count


@pytest.mark.parametrize("batched", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)])
@pytest.mark.parametrize("mean", [False, True])
def test_vmap_of_bags_between_offsets_is_each_by_itself(mean, batched):
    tables = cresset.arange(24.0).view(3, 4, 2)
    words = cresset.stack([WORDS, WORDS.flip(0), 3 - WORDS])
    starts = cresset.tensor([[0, 2, 2, 7], [0, 0, 4, 7], [0, 1, 5, 7]])
    given = [all if dim == 0 else all[0] for all, dim in zip((tables, words, starts), batched, strict=True)]
    together = cresset.vmap(lambda w, i, s: cresset._embedding_bags(w, i, s, mean), in_dims=batched)(*given)
    for k in range(3):
        own = [all[k] if dim == 0 else all for all, dim in zip(given, batched, strict=True)]
        assert together[k].equal(cresset._embedding_bags(*own, mean))


@pytest.mark.parametrize("weight, indices, starts", [
    (WEIGHT, WORDS, None), (WEIGHT, WORDS.view(1, 7), STARTS), (WEIGHT, WORDS.int(), STARTS),
    (WEIGHT[0], WORDS, STARTS), (WEIGHT, WORDS, STARTS[:0]), (WEIGHT, WORDS, STARTS.view(2, 2)),
])  # fmt: skip
def test_bags_of_another_form_are_refused(weight, indices, starts):
    with pytest.raises(RuntimeError, match="_embedding_bags: expected"):
        cresset._embedding_bags(weight, indices, starts, False)


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
