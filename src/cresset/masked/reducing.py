"""Reductions and normalizations in which only the elements under a True of `mask` count.

Each fills the masked-out elements with the value that does not change the result, and then does the ordinary operation.
A slice without any element gives that value itself (0 for a sum, -inf for a maximum), or nan where there is none. Of a
MaskedTensor, data and mask are taken.
"""

import functools
import inspect

import cresset

from . import sparse
from .masks import _canonical_dim, _input_mask, filled, greatest, least


def _masked(*layouts):
    """For functions of (input, ..., mask): takes a MaskedTensor apart, and refuses the layouts that are not named."""

    def decorate(function):
        name = "std/var" if function.__name__ in ("std", "var") else function.__name__

        @functools.wraps(function)
        def wrapped(input, *args, **kwargs):
            from .maskedtensor import is_masked_tensor

            if is_masked_tensor(input):
                input, mask = input.get_data(), input.get_mask()
                if kwargs.get("mask") is None:
                    kwargs["mask"] = mask
            if input.layout is not cresset.strided and input.layout not in layouts:
                accepted = ", ".join(["strided", *(str(layout).removeprefix("torch.") for layout in layouts[:-1])])
                accepted += f" or {str(layouts[-1]).removeprefix('torch.')}" if layouts else ""
                raise ValueError(f"masked {name} expects {accepted} tensor (got {input.layout} tensor)")
            return function(input, *args, **kwargs)

        wrapped.__signature__ = inspect.signature(function)
        return wrapped

    return decorate


_BOTH = (cresset.sparse_coo, cresset.sparse_csr)


def _drop(result, input, dim, keepdim):
    """`result`, whose reduced dimensions have size 1, without them unless `keepdim`."""
    return result if keepdim or not result.ndim else result.squeeze(list(_canonical_dim(dim, input.ndim)))


def _reduce(input, dim, step):
    """`step(tensor, dim)` for the last of the dimensions, then the one before, and so on; each keeps its dimension."""
    for each in reversed(_canonical_dim(dim, input.ndim)) if input.ndim else ():
        input = step(input, each)
    return input


@_masked(*_BOTH)
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the unmasked elements.

    >>> cresset.masked.sum(cresset.tensor([1, 2, 3]), 0, mask=cresset.tensor([True, False, True]))
    tensor(4)
    """
    if input.layout is not cresset.strided:
        return sparse.reduced("sum", input, dim, keepdim, dtype, mask)
    return filled(input, mask, 0).sum(list(_canonical_dim(dim, input.ndim)), keepdim=keepdim, dtype=dtype)


@_masked(*_BOTH)
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the unmasked elements.

    >>> cresset.masked.prod(cresset.tensor([2, 3, 4]), 0, mask=cresset.tensor([True, False, True]))
    tensor(8)
    """
    if input.layout is not cresset.strided:
        return sparse.reduced("prod", input, dim, keepdim, dtype, mask)
    unmasked = filled(input, mask, 1)
    if not input.ndim:
        return unmasked.prod(dtype=dtype)
    if dim == []:  # of no dimension it stays as it is, while () stands for all
        return unmasked.to(dtype or unmasked.dtype)
    result = _reduce(unmasked, dim, lambda tensor, each: tensor.prod(each, keepdim=True, dtype=dtype))
    return _drop(result, input, dim, keepdim)


@_masked()
def cumsum(input, dim, *, dtype=None, mask=None):
    """The sum of the unmasked elements so far.

    >>> cresset.masked.cumsum(cresset.tensor([1, 2, 3]), 0, mask=cresset.tensor([True, False, True]))
    tensor([1, 1, 4])
    """
    return filled(input, mask, 0).cumsum(dim, dtype=input.dtype if dtype is None else dtype)


@_masked()
def cumprod(input, dim, *, dtype=None, mask=None):
    """The product of the unmasked elements so far.

    >>> cresset.masked.cumprod(cresset.tensor([2, 3, 4]), 0, mask=cresset.tensor([True, False, True]))
    tensor([2, 2, 8])
    """
    return filled(input, mask, 1).cumprod(dim, dtype=input.dtype if dtype is None else dtype)


@_masked(*_BOTH)
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest unmasked element.

    >>> cresset.masked.amax(cresset.tensor([1, 9, 3]), 0, mask=cresset.tensor([True, False, True]))
    tensor(3)
    """
    if input.layout is not cresset.strided:
        return sparse.reduced("amax", input, dim, keepdim, dtype, mask)
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, least(input.dtype)).amax(list(_canonical_dim(dim, input.ndim)), keepdim)


@_masked(*_BOTH)
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest unmasked element.

    >>> cresset.masked.amin(cresset.tensor([3, 1, 4]), 0, mask=cresset.tensor([True, False, True]))
    tensor(3)
    """
    if input.layout is not cresset.strided:
        return sparse.reduced("amin", input, dim, keepdim, dtype, mask)
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, greatest(input.dtype)).amin(list(_canonical_dim(dim, input.ndim)), keepdim)


@_masked()
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the largest unmasked element, as a number of the input's dtype (or of `dtype`).

    >>> cresset.masked.argmax(cresset.tensor([1, 9, 3]), 0, mask=cresset.tensor([True, False, True]))
    tensor(2)
    """
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, least(input.dtype)).argmax(dim, bool(keepdim)).to(input.dtype)


@_masked()
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the smallest unmasked element, as a number of the input's dtype (or of `dtype`).

    >>> cresset.masked.argmin(cresset.tensor([3, 1, 4]), 0, mask=cresset.tensor([True, False, True]))
    tensor(0)
    """
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, greatest(input.dtype)).argmin(dim, bool(keepdim)).to(input.dtype)


def _count(input, dim, keepdim, mask):
    """The number of unmasked elements of each slice."""
    mask = cresset.ones_like(input, dtype=cresset.bool) if mask is None else _input_mask(input, mask=mask)
    return mask.sum(list(_canonical_dim(dim, input.ndim)), keepdim=keepdim)


@_masked(cresset.sparse_csr)
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the unmasked elements; nan where there are none.

    >>> cresset.masked.mean(cresset.tensor([1.0, 9.0, 3.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor(2.)
    """
    wanted = input.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {wanted}"
        )
    if input.layout is not cresset.strided:
        return sparse.reduced("mean", input, dim, keepdim, dtype, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


@_masked()
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median of the unmasked elements (the lower of the two middle ones); nan where there are none.

    >>> cresset.masked.median(cresset.tensor([1.0, 9.0, 3.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor(1.)
    """
    if not input.is_floating_point():
        raise ValueError(f"masked.median: expected an input of floating point dtype, got {input.dtype}")
    input = input if dtype is None else input.to(dtype)
    if mask is None:
        return input.median(dim, keepdim).values
    if bool((input.isnan() & mask.to(cresset.bool)).any()):
        raise ValueError("masked.median: expected no unmasked nan in the input")
    return cresset.nanmedian(filled(input, mask, float("nan")), dim, keepdim).values


@_masked()
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the unmasked elements.

    >>> cresset.masked.norm(cresset.tensor([3.0, 9.0, 4.0]), 2, 0, mask=cresset.tensor([True, False, True]))
    tensor(5.)
    """
    ord = 2.0 if ord is None else ord
    unmasked = filled(input, mask, float("inf") if ord < 0 else 0)
    return cresset.linalg.vector_norm(unmasked, ord, list(_canonical_dim(dim, input.ndim)), bool(keepdim), dtype=dtype)


@_masked()
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the unmasked elements.

    >>> cresset.masked.var(cresset.tensor([1.0, 9.0, 3.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor(2.)
    """
    if unbiased is not None:
        if correction is not None:
            raise ValueError("masked.var: only one of 'correction' and 'unbiased' can be given")
        correction = int(unbiased)
    correction = 1 if correction is None else correction
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = cresset.float32
    input = input if dtype is None else input.to(dtype)
    count = _count(input, dim, True, mask)
    deviation = filled(input - sum(input, dim, keepdim=True, mask=mask) / count, mask, 0)
    square = (deviation * deviation.conj()).real if input.is_complex() else deviation * deviation
    total = square.sum(list(_canonical_dim(dim, input.ndim)), keepdim=True)
    result = total / (count - correction).clamp_min(0).to(total.dtype)
    return _drop(result.to(input.dtype), input, dim, keepdim)


@_masked()
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the unmasked elements.

    >>> cresset.masked.std(cresset.tensor([1.0, 9.0, 3.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor(1.4142)
    """
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


@_masked()
def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the unmasked elements; the others get 0.

    >>> cresset.masked.softmax(cresset.tensor([1.0, 9.0, 1.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, float("-inf")).softmax(dim)


@_masked()
def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of `softmax` over the unmasked elements; the others get -inf.

    >>> cresset.masked.log_softmax(cresset.tensor([1.0, 9.0, 1.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    input = input if dtype is None else input.to(dtype)
    return filled(input, mask, float("-inf")).log_softmax(dim)


@_masked()
def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negative over the unmasked elements; the others get 0.

    >>> cresset.masked.softmin(cresset.tensor([1.0, 9.0, 1.0]), 0, mask=cresset.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return softmax(-input, dim, dtype=dtype, mask=mask)


@_masked()
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The unmasked elements divided by their norm (at least `eps`); the others get 0.

    >>> cresset.masked.normalize(cresset.tensor([3.0, 9.0, 4.0]), 2, 0, mask=cresset.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    input = input if dtype is None else input.to(dtype)
    length = norm(input, ord, dim, keepdim=True, mask=mask)
    return filled(input, mask, 0) / length.clamp_min(eps)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), where masked-out elements do not add.

    >>> cresset.masked.logaddexp(cresset.zeros(1), cresset.zeros(1), other_mask=cresset.tensor([False]))
    tensor([0.])
    """
    input, other = (x if dtype is None else x.to(dtype) for x in (input, other))
    return cresset.logaddexp(filled(input, input_mask, float("-inf")), filled(other, other_mask, float("-inf")))


@_masked()
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the sum of exp of the unmasked elements, of the input's dtype.

    >>> cresset.masked.logsumexp(cresset.zeros(3), 0, mask=cresset.tensor([True, False, True]))
    tensor(0.6931)
    """
    input = input if dtype is None else input.to(dtype)
    unmasked = filled(input, mask, least(input.dtype))
    return cresset.logsumexp(unmasked, list(_canonical_dim(dim, input.ndim)), keepdim).to(input.dtype)
