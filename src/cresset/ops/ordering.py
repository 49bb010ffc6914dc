"""Functions made of `sort` and `nonzero`."""

import cresset

from .registry import function


@function(method=True)
def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that sort along `dim`.

    >>> cresset.argsort(cresset.tensor([30, 10, 20]))
    tensor([1, 2, 0])
    """
    return cresset.sort(input.detach(), dim=dim, descending=descending, stable=stable)[1]


@function(method=True, out=True)
def msort(input):
    """The elements sorted along the first dimension.

    >>> cresset.msort(cresset.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return input.sort(0)[0]


@function(method=True)
def argwhere(input):
    """The indices of the elements that are not zero, one row for each.

    >>> cresset.argwhere(cresset.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return input.nonzero()


@function(method=True, out=True)
def nonzero_static(input, *, size, fill_value=-1):
    """`nonzero` with a number of rows that is known beforehand: cut off, or filled up with `fill_value`.

    >>> cresset.nonzero_static(cresset.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = input.nonzero()[:size]
    return cresset.cat([found, found.new_full((size - found.size(0), input.ndim), fill_value)])
