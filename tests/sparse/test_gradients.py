"""Sparse gradients: those of embeddings, in .grad and in the optimizers that take them."""

import copy
import gc

import pytest

import cresset
from cresset import nn, optim


def table(**kwargs):
    torch_table = nn.Embedding(4, 2, sparse=True, **kwargs)
    nn.init.zeros_(torch_table.weight)
    return torch_table


def test_the_gradient_of_a_sparse_embedding_has_the_rows_that_were_taken():
    e = table()
    e(cresset.tensor([1, 3, 1])).sum().backward()
    grad = e.weight.grad
    assert grad.is_sparse and grad._indices().tolist() == [[1, 3, 1]]
    assert grad.coalesce().values().tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_sparse_gradients_add_up_and_keep_their_identity():
    e = table(padding_idx=0)
    for _ in range(3):
        e(cresset.tensor([0, 2])).sum().backward()
        gc.collect()
        assert e.weight.grad is e.weight.grad
    assert e.weight.grad.to_dense().tolist() == [[0.0, 0.0], [0.0, 0.0], [3.0, 3.0], [0.0, 0.0]]


def test_sparse_and_dense_gradients_make_a_dense_one():
    e = table()
    (e(cresset.tensor([1])).sum() + e.weight.sum()).backward()
    assert e.weight.grad.layout == cresset.strided
    assert e.weight.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
    e(cresset.tensor([1])).sum().backward()
    assert e.weight.grad.tolist()[1] == [3.0, 3.0]


def test_a_sparse_gradient_becomes_dense_on_its_way_through_other_operators():
    w = cresset.ones(3, 2, requires_grad=True)
    nn.functional.embedding(cresset.tensor([1, 1]), w * 2, sparse=True).sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0], [4.0, 4.0], [0.0, 0.0]]


def test_a_bag_has_sparse_gradients_too():
    bag = nn.EmbeddingBag(4, 2, mode="sum", sparse=True)
    bag(cresset.tensor([[1, 3]])).sum().backward()
    assert bag.weight.grad.coalesce().indices().tolist() == [[1, 3]]


def test_sparse_adam_changes_only_the_rows_of_the_gradient():
    e = table()
    optimizer = optim.SparseAdam(e.parameters(), lr=0.1)
    e(cresset.tensor([1])).sum().backward()
    optimizer.step()
    assert e.weight[1].tolist() == pytest.approx([-0.1, -0.1], rel=1e-5)  # the first step of Adam is lr * sign
    assert e.weight[0].tolist() == [0.0, 0.0]
    assert optimizer.state[e.weight]["step"] == 1


def test_sparse_adam_refuses_dense_gradients():
    w = nn.Parameter(cresset.ones(2))
    w.grad = cresset.ones(2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optim.SparseAdam([w]).step()


def test_sgd_adds_sparse_gradients():
    e = table()
    e(cresset.tensor([1, 1])).sum().backward()
    optim.SGD(e.parameters(), lr=0.5).step()
    assert e.weight.tolist() == [[0.0, 0.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]


def test_adagrad_scales_the_rows_of_sparse_gradients():
    e = table()
    e(cresset.tensor([1, 1])).sum().backward()
    optim.Adagrad(e.parameters(), lr=0.5).step()
    assert e.weight[1].tolist() == pytest.approx([-0.5, -0.5])  # g / sqrt(g^2) = 1
    assert e.weight[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [optim.Adam, optim.RMSprop, optim.Adamax])
def test_other_optimizers_refuse_sparse_gradients(kind):
    e = table()
    e(cresset.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse gradients"):
        kind(e.parameters()).step()


def test_what_becomes_of_the_whole_is_none_of_the_given_tensors():
    values = cresset.tensor([3.0, 4.0])
    for _ in range(2):
        coo = cresset.sparse_coo_tensor(cresset.tensor([[0, 1], [2, 0]]), values, (2, 3)).requires_grad_()
        csr = cresset.sparse_csr_tensor(
            cresset.tensor([0, 1, 2]), cresset.tensor([2, 0]), values, (2, 3)
        ).requires_grad_()
        (coo.to_dense().sum() + csr.to_dense().sum()).backward()
        assert coo.is_leaf and coo.grad.to_dense().tolist() == csr.grad.to_dense().tolist() == [[0, 0, 1], [1, 0, 0]]
        assert not values.requires_grad and values.grad is None
    values.zero_()  # the memory is shared
    assert coo.to_dense().count_nonzero() == 0


class TestGradientsOfUncoalescedTensors:
    def test_an_element_has_one_gradient_however_many_values_add_up_to_it(self):
        x = cresset.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,), requires_grad=True)
        (x.to_dense() ** 2).sum().backward()
        assert x.grad.is_coalesced() and x.grad.to_dense().tolist() == [0.0, 10.0, 0.0]
        (found,) = cresset.autograd.grad((x.to_dense() ** 2).sum(), x)
        assert found.to_dense().tolist() == [0.0, 10.0, 0.0]

    def test_backward_takes_a_gradient_with_other_indices(self):
        x = cresset.tensor([1.0, 0.0, 2.0]).to_sparse().requires_grad_()
        (x * 3).backward(cresset.tensor([1.0, 5.0, 1.0]).to_sparse())
        assert x.grad.to_dense().tolist() == [3.0, 0.0, 3.0]
        (x * 3).backward(cresset.tensor([1.0, 5.0, 1.0]))
        assert x.grad.to_dense().tolist() == [6.0, 0.0, 6.0]


@pytest.mark.parametrize(
    "layout", [cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc, cresset.sparse_bsr, cresset.sparse_bsc]
)
def test_gradcheck_of_all_elements_of_a_sparse_input(layout):
    blocks = (1, 2) if layout in (cresset.sparse_bsr, cresset.sparse_bsc) else None
    x = cresset.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=cresset.float64).to_sparse(layout=layout, blocksize=blocks)
    x.requires_grad_()
    assert cresset.autograd.gradcheck(lambda s: s.to_dense(masked_grad=False) ** 2, (x,), masked=False)
    assert cresset.autograd.gradcheck(lambda s: s.sum(), (x,))

    class Wrong(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t**2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        cresset.autograd.gradcheck(lambda s: Wrong.apply(s.to_dense()), (x,))


def test_gradients_of_all_elements_where_none_is_missing():
    values = cresset.ones(2, requires_grad=True)
    s = cresset.sparse_coo_tensor([[0, 1]], values, (3,))
    s.to_dense(masked_grad=False).sum().backward()
    assert values.grad.tolist() == [1.0, 1.0]
    leaf = cresset.ones(2, 2).to_sparse().requires_grad_()
    assert (leaf * 2).to_dense(masked_grad=False).requires_grad
    partial = cresset.eye(2).to_sparse().requires_grad_()
    with pytest.raises(NotImplementedError, match="masked_grad=False"):
        (partial * 2).to_dense(masked_grad=False)


def test_a_gradient_that_is_assigned_has_its_own_indices():
    x = cresset.sparse_coo_tensor(cresset.tensor([[0, 1]]), cresset.ones(2), (3,), requires_grad=True)
    for places in ([2, 2], [2], [0, 1, 2]):
        given = cresset.sparse_coo_tensor(cresset.tensor([places]), cresset.ones(len(places)), (3,))
        x.grad = given
        assert x.grad is given
        assert copy.deepcopy(x).grad.to_dense().tolist() == given.to_dense().tolist()
    (2 * x).to_dense().sum().backward()
    assert x.grad.to_dense().tolist() == [3.0, 3.0, 1.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="grad has data of a different size"):
        x.grad = cresset.sparse_coo_tensor(cresset.tensor([[0]]), cresset.ones(1), (4,))
