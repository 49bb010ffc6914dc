"""Matrices as cuSOLVER wants them: column after column, those of a batch one after the other."""

import cresset

from .._native import forget_base


def column_major(tensor):
    """A fresh copy of matrices in which columns are contiguous, whatever the sizes; conjugation is carried out."""
    rows_first = cresset.empty(
        (*tensor.shape[:-2], tensor.size(-1), tensor.size(-2)), dtype=tensor.dtype, device=tensor.device
    )
    return forget_base(rows_first.copy_(tensor.detach().mT).mT)


def in_columns(tensor):
    """The same matrices to read: themselves where they lie so, else a copy."""
    tensor = tensor.detach()
    return tensor if tensor.mT.is_contiguous() and not tensor.is_conj() else column_major(tensor)


def uninitialized(like, *sizes, dtype=None):
    """Column-major matrices (or, with one size, vectors) for the batch of `like`."""
    dtype = dtype or like.dtype
    batch = like.shape[:-2]
    if len(sizes) == 1:
        return cresset.empty((*batch, *sizes), dtype=dtype, device=like.device)
    return forget_base(cresset.empty((*batch, sizes[1], sizes[0]), dtype=dtype, device=like.device).mT)
