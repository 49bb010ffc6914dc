"""Reading through indices and masks: documentation and derivatives. Writing through them is in `scatter.py`."""

import cresset

from .. import _native
from .registry import function, operator

index = operator("index", """x[i, j, ...] for tensors i, j: integers, which broadcast together, and masks; None keeps a dimension whole.

    The indices' own dimensions stand where the indexed dimensions stood if those are neighbours, else in front.
    """)  # fmt: skip


@index.derivative
def _(grad, input_info, indices):
    yield lambda: onto_zeros("index_put", input_info, grad, indices, grad, True)


def onto_zeros(name, info, grad, *args):
    """Zeros in the shape of an operator's argument on which `name` has collected its gradient, in place unless inside vmap."""
    inside = any(map(_native.level_of, (grad, *args))) or any(map(_native.level_of, args[0] if isinstance(args[0], list) else ()))
    return getattr(grad.new_zeros(info.shape), name if inside else name + "_")(*args)


index_select = operator("index_select", """The slices along `dim` that the vector `index` names, in its order.

    >>> cresset.index_select(cresset.tensor([[1, 2], [3, 4]]), 0, cresset.tensor([1, 1]))
    tensor([[3, 4],
            [3, 4]])
    """)  # fmt: skip


@index_select.derivative
def _(grad, input_info, dim, index):
    yield lambda: onto_zeros("index_add", input_info, grad, dim, index, grad)


gather = operator("gather", """Elements picked along `dim`: result[i][j] = input[index[i][j]][j] for dim 0, and so on.

    Args:
        index: as many dimensions as `input`, and no larger than it apart from `dim`.
        sparse_grad: the gradient of `input` is a sparse tensor, with a value for each element that was picked.

    >>> cresset.gather(cresset.tensor([[1, 2], [3, 4]]), 1, cresset.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """)  # fmt: skip


@gather.derivative
def _(grad, input_info, dim, index, sparse_grad):
    if sparse_grad:
        yield lambda: sparse_elements(grad, input_info.shape, dim, index)
    else:
        yield lambda: onto_zeros("scatter_add", input_info, grad, dim, index, grad)


def sparse_elements(grad, size, dim, index):
    """The gradient of gather's input as a sparse tensor: a value for each index, which may repeat."""
    from ..sparse.coo import coo

    if index.dim() == 0:
        return coo(index.new_zeros((0, 1)), grad.reshape(1), size)
    places = cresset.ones_like(index, dtype=cresset.bool).nonzero().t()
    places[dim] = index.reshape(-1)
    return coo(places, grad.reshape(-1), size)


take = operator("take", """The elements that `index` names, counted through the flattened tensor.

    >>> cresset.take(cresset.tensor([[1, 2], [3, 4]]), cresset.tensor([0, -1]))
    tensor([1, 4])
    """)  # fmt: skip


@take.derivative
def _(grad, input_info, index):
    yield lambda: onto_zeros("put", input_info, grad, index, grad, True)


masked_select = operator("masked_select", """The elements where `mask` holds, as a vector.

    >>> x = cresset.tensor([1, 2, 3])
    >>> cresset.masked_select(x, x > 1)
    tensor([2, 3])
    """)  # fmt: skip


@masked_select.derivative
def _(grad, input_info, mask):
    def back():
        shape = cresset.broadcast_shapes(input_info.shape, mask.shape)
        return grad.new_zeros(shape).masked_scatter(mask, grad)

    yield back


_nonzero, _nonzero_by_dim = operator("nonzero"), operator("nonzero_numpy")


@function(method=True)
def nonzero(input, *, as_tuple=False, out=None):
    """The indices of the elements that are not zero.

    Args:
        as_tuple: one vector for each dimension, fit to index with, instead of a matrix with a row for each element.

    >>> cresset.nonzero(cresset.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple:
        return _nonzero_by_dim(input)
    return _nonzero(input) if out is None else _nonzero(input, out=out)


embedding = operator("embedding", """The rows of `weight` that `indices` name.

    Args:
        padding_idx: a row that gets no gradient; -1: none.
        scale_grad_by_freq: divide each row's gradient by the number of times it was taken.
        sparse: the gradient of `weight` is a sparse tensor, with a row for each index that was taken.

    >>> cresset.embedding(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """)  # fmt: skip


@embedding.derivative
def _(grad, weight_info, indices, padding_idx, scale_grad_by_freq, sparse):
    def of_weight():
        if sparse and scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        if sparse:
            return sparse_rows(grad, indices, weight_info.shape, padding_idx)
        return embedding_backward(grad, indices, weight_info.shape[0], padding_idx, scale_grad_by_freq)

    yield of_weight


def sparse_rows(grad, indices, size, padding_idx):
    """The gradient of embedding's weight as a sparse tensor: a row for each index, which may repeat."""
    from ..sparse.coo import coo

    index, rows = indices.reshape(1, -1).long(), grad.reshape(-1, size[1])
    if padding_idx >= 0:
        kept = index[0] != padding_idx
        index, rows = index[:, kept], rows[kept]
    return coo(index, rows, size)


embedding_backward = operator("embedding_dense_backward", """The rows of `grad_output`, summed by index.""")


@embedding_backward.derivative
def _(grad, indices, padding_idx, scale_grad_by_freq):
    def back():
        if scale_grad_by_freq:
            raise RuntimeError("embedding: double backward is not supported with scale_grad_by_freq")
        rows = cresset.embedding(grad, indices)
        return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0) if padding_idx >= 0 else rows

    yield back
