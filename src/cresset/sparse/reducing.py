"""Sums, norms and softmax of sparse tensors. Only values that are kept count in softmax; the others are minus infinity
there.
"""

import cresset

from .arithmetic import like
from .compressed import CompressedTensor
from .converting import to_coo, to_layout
from .coo import CooTensor, coo, flattened, summed_at
from .shaping import wrapped
from .tensor import LAYOUT_NAMES, rule


def as_dims(dim, rank):
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    found = [wrapped(d, rank) for d in dims]
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    return found


@rule("sum")
def total(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of all values, dense; or along some dimensions: sparse as long as a sparse dimension remains."""
    if dtype is not None:
        input = input.to(dtype)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return input._recorded.sum()
    dims = as_dims(dim, input.dim())
    if isinstance(input, CompressedTensor):
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return like(total(to_coo(input), dim, True), input)
    k = input.sparse_dim()
    indices, values = input._parts
    over_dense = [d - k + 1 for d in dims if d >= k]
    if over_dense:
        values = values.sum(over_dense, keepdim=keepdim)
    elif not values.dtype.is_floating_point and not values.dtype.is_complex:
        values = values.long()
    over_sparse = [d for d in dims if d < k]
    kept = [d for d in range(k) if d not in over_sparse]
    size = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    if not over_sparse:
        return coo(indices, values, size, input._is_coalesced)
    if not kept:
        result = values.sum(0)
        return coo(indices.new_zeros((k, 1)), result.unsqueeze(0), size, True) if keepdim else result
    left = indices[cresset.tensor(kept, dtype=cresset.int64)]
    reduced = coo(left, values, [*(input.shape[d] for d in kept), *values.shape[1:]]).coalesce()
    if not keepdim:
        return reduced
    rows, place = [], 0
    for d in range(k):
        rows.append(reduced._indices()[place] if d in kept else left.new_zeros(reduced._nnz()))
        place += d in kept
    return coo(cresset.stack(rows), reduced._recorded, size)


@rule("any")
def any_of(input, dim=None, keepdim=False):
    """Whether some element is not zero."""
    if dim is not None:
        raise NotImplementedError(
            "any: along a dimension it is not implemented for sparse tensors; call to_dense() first"
        )
    if keepdim:
        raise TypeError("any: keepdim needs a dim")
    return input._recorded.any()


@rule("linalg_vector_norm", "norm")
def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of all elements; the zeros that are not kept count for no order above zero."""
    values = (input.coalesce() if isinstance(input, CooTensor) else input)._recorded
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True; reshape the result")
    if dim is not None and len(as_dims(dim, input.dim())) != input.dim():
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    if isinstance(ord, (int, float)) and ord < 0:
        raise RuntimeError(f"norm: a norm of order {ord} is zero wherever a zero is not kept; call to_dense() first")
    if dtype is not None:
        raise RuntimeError(f"norm_sparse currently does not support 'dtype' argument, got {dtype}; call to() first")
    if values.numel():
        return cresset.linalg.vector_norm(values, 2 if ord in (None, "fro") else ord)
    return values.abs().sum()


def softmax(input, dim, dtype=None, log=False):
    """Softmax along `dim` over the values that are kept."""
    if not isinstance(input, CooTensor):
        raise RuntimeError(f"softmax: expected a sparse_coo tensor, got {input.layout}; call to_sparse_coo() first")
    if dtype is not None:
        input = input.to(dtype)
    input = input.coalesce()
    at, k = wrapped(dim, input.dim()), input.sparse_dim()
    indices, values = input._parts
    if at >= k:
        function = cresset.log_softmax if log else cresset.softmax
        return input._with(function(values, at - k + 1))
    others = [d for d in range(k) if d != at]
    key = flattened(indices[cresset.tensor(others, dtype=cresset.int64)], [input.shape[d] for d in others])
    groups, which = key.unique(return_inverse=True)
    shape = (groups.numel(), *values.shape[1:])
    index = which.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
    with cresset.no_grad():
        greatest = values.new_full(shape, -float("inf")).scatter_reduce(0, index, values.detach(), "amax")
    shifted = values - greatest[which]
    sums = summed_at(groups.numel(), which, shifted.exp())
    return input._with(shifted - sums.log()[which] if log else shifted.exp() / sums[which])


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix with the rows of `diagonals` on its diagonals, `offsets` above the main one."""
    if len(shape) != 2:
        raise RuntimeError(f"spdiags: Output shape must be 2d, got {tuple(shape)}")
    if offsets.dim() > 1:
        raise RuntimeError(f"spdiags: Offsets must be scalar or vector, got shape {tuple(offsets.shape)}")
    if diagonals.dim() not in (1, 2):
        raise RuntimeError(f"spdiags: Diagonals must be vector or matrix, got shape {tuple(diagonals.shape)}")
    if offsets.dtype != cresset.int64:
        raise RuntimeError(f"spdiags: Offset Tensor must have dtype Long but got {str(offsets.dtype)[6:]}")
    if layout not in (None, cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc):
        raise RuntimeError(
            "spdiags: Only output layouts (Sparse, SparseCsr, SparseCsc) are supported, got "
            f"{LAYOUT_NAMES[str(layout)]}"
        )
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if offsets.numel() != diagonals.shape[0]:
        raise RuntimeError(
            f"spdiags: Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets "
            f"({offsets.numel()})"
        )
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("spdiags: Offset tensor contains duplicate values")
    nothing = offsets.new_empty(0)
    rows, columns, values = [nothing], [nothing], [diagonals.new_empty(0)]
    for row, offset in zip(diagonals, offsets.tolist(), strict=True):
        begin, end = max(offset, 0), min(shape[1], shape[0] + offset, row.numel())
        column = cresset.arange(begin, max(begin, end), device=offsets.device)
        rows.append(column - offset)
        columns.append(column)
        values.append(row[column])
    made = coo(cresset.stack([cresset.cat(rows), cresset.cat(columns)]), cresset.cat(values), tuple(shape))
    return made if layout is None else to_layout(made.coalesce(), layout)
