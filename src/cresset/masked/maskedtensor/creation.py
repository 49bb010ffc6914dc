"""The two ways to make a masked tensor: a leaf of its own, or a step of the graph."""

import cresset

from .core import AsMasked, MaskedTensor, wrapped

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A copy of `data` whose elements are there where `mask` is True: a leaf of the graph, as torch.tensor makes.

    >>> cresset.masked.masked_tensor(cresset.arange(3.0), cresset.tensor([True, False, True]))
    MaskedTensor(
      [  0.0000,       --,   2.0000]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """The same with the history of `data`: its gradient is a masked tensor, too.

    >>> x = cresset.tensor([1.0, 1.0], requires_grad=True)
    >>> there = cresset.tensor([True, False])
    >>> cresset.masked.as_masked_tensor(x * 2, there).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  2.0000,       --]
    )
    """
    if cresset.is_tensor(data) and data.layout is not cresset.strided:
        return wrapped(data, mask)
    return AsMasked.apply(data, mask)
