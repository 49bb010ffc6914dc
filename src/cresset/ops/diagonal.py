"""Diagonals: matrices made of them, their sum, and writing them."""

import cresset

from .._native import name_node
from .dimensions import wrap_dim
from .registry import function


@function(method=True, out=True)
def diag(input, diagonal=0):
    """The diagonal of a matrix, or the matrix with a vector as its diagonal.

    >>> cresset.diag(cresset.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim == 2:
        return cresset.diagonal_copy(input, diagonal)
    raise RuntimeError(f"diag: Supports 1D or 2D tensors. Got {input.ndim}D")


@function(method=True)
def diagflat(input, offset=0):
    """The matrix with all elements of `input` on its diagonal.

    >>> cresset.diagflat(cresset.tensor([[1], [2]]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    return diag_embed(input.reshape(-1), offset)


@function(method=True)
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Make the last dimension of `input` the diagonal of matrices that lie in `dim1` and `dim2` of the result.

    >>> cresset.diag_embed(cresset.tensor([[1, 2], [3, 4]])).shape
    torch.Size([2, 2, 2])
    """
    ndim = input.ndim + 1
    first, second = wrap_dim(dim1, ndim, "diag_embed"), wrap_dim(dim2, ndim, "diag_embed")
    if first == second:
        raise RuntimeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape, side = list(input.shape[:-1]), input.size(-1) + abs(offset)
    for dim in sorted((first, second)):
        shape.insert(dim, side)
    result = input.new_zeros(shape)
    result.diagonal(offset, first, second).copy_(input)
    return name_node(result, "DiagEmbedBackward0")


@function(method=True, autocast={"cpu": "float32"})
def trace(input):
    """The sum of the diagonal of a matrix.

    >>> cresset.trace(cresset.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype == cresset.bool:
        raise NotImplementedError(f"trace: not implemented for {input.dtype}")
    return name_node(input.diagonal().sum(), "TraceBackward0")


@function(method="only")
def fill_diagonal_(input, fill_value, wrap=False):
    """Set the main diagonal to `fill_value`; of a tall matrix, again and again below it if `wrap`.

    >>> cresset.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    ndim, shape = input.ndim, input.shape
    if ndim < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must larger than 1, got a tensor of shape {tuple(shape)}")
    if ndim > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length, got {tuple(shape)}")
    step = sum(input.stride())
    input.as_strided((min(shape),), (step,), input.storage_offset()).fill_(fill_value)
    if wrap and ndim == 2:
        height, width = shape
        for top in range(width + 1, height, width + 1):
            input[top:].diagonal().fill_(fill_value)
    return input
