"""Masked reductions of sparse tensors. What is under a True of the mask and not specified is a zero, and counts."""

import cresset

from ..sparse.converting import to_coo
from ..sparse.coo import coo, flattened, summed_at, unflattened
from .masks import _canonical_dim, _input_mask, _where, identity


def reduced(name, input, dim, keepdim, dtype, mask):
    """The sum, prod, amax, amin or mean of a tensor's unmasked elements, in its layout: specified where
    there are any.
    """
    layout = str(input.layout).removeprefix("torch.")
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")
    if layout == "sparse_csr" and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if dtype is None and name in ("sum", "prod") and not (input.dtype.is_floating_point or input.dtype.is_complex):
        dtype = cresset.int64
    input = input if dtype is None else input.to(dtype)
    counts = None
    if mask is not None:
        mask = _input_mask(input, mask=mask)
        input = _where(mask, input, 0 if name == "mean" else identity(name, input.dtype))
        counts = to_coo(mask.to(input.dtype)) if name == "mean" else None
    dims = _canonical_dim(dim, input.ndim) if input.ndim else ()
    result = _along("sum" if name == "mean" else name, to_coo(input).coalesce(), dims, keepdim)
    whole = all(d in dims for d in range(input.ndim))
    if whole and counts is None:  # one element: specified unless it is zero
        empty = not result._nnz() and name != "sum"
        start = cresset.full(result.shape, identity(name, result.dtype), dtype=result.dtype, device=result.device)
        result = (start if empty else result.to_dense()).to_sparse()
    if counts is not None:
        counts = _along("sum", _where(mask, counts.to_sparse_csr(), 0).to_sparse_coo().coalesce(), dims, keepdim)
        result = result._with(result._recorded / counts._recorded)
    return result.to_sparse_csr() if layout == "sparse_csr" else result


def _along(name, input, dims, keepdim):
    """A coordinate tensor reduced along dimensions; the result has each index once."""
    sparse_dims = input.sparse_dim()
    indices, values = input._parts
    for d in reversed(dims):
        if d >= sparse_dims:
            values = getattr(values, name)(d - sparse_dims + 1, keepdim=keepdim)
    size = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    kept = [d for d in range(sparse_dims) if d not in dims]
    if len(kept) == sparse_dims:
        return coo(indices, values, size, True)
    sizes = [input.shape[d] for d in kept]
    places, group = flattened(indices[kept], sizes).unique(return_inverse=True)
    values = _by_group(name, values, group, places.numel())
    left = unflattened(places, sizes)
    if keepdim:
        rows = dict(zip(kept, left.unbind(0), strict=True))
        left = cresset.stack([rows.get(d, cresset.zeros_like(places)) for d in range(sparse_dims)])
    return coo(left, values, size, True)


def _by_group(name, values, group, count):
    """The values of each group reduced to one."""
    if name == "sum":
        return summed_at(count, group, values)
    if not values.dtype.is_complex:
        start = values.new_zeros((count, *values.shape[1:]))
        return start.index_reduce(0, group, values, name, include_self=False)
    # A product of complex numbers: pairs of neighbors of a group, until each has one number left.
    order = group.argsort(stable=True)
    values, group = values[order], group[order]
    while group.numel() > count:
        first = cresset.searchsorted(group, group)
        rank = cresset.arange(group.numel(), device=group.device) - first
        left = (rank % 2 == 0).nonzero().squeeze(1)
        right = (left + 1).clamp(max=group.numel() - 1)
        paired = (group[right] == group[left]) & (right > left)
        factor = cresset.where(paired.view(-1, *[1] * (values.ndim - 1)), values[right], 1)
        values, group = values[left] * factor, group[left]
    return values
