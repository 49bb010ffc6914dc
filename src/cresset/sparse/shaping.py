"""Rules that move the places of values: transposing, selecting, joining, indexing."""

import cresset

from .compressed import BLOCKED, BY_ROW, CompressedTensor, compressed
from .converting import to_coo, to_layout
from .coo import CooTensor, coo, flattened
from .tensor import SparseTensor, rule

FLIPPED = {
    "sparse_csr": "sparse_csc",
    "sparse_csc": "sparse_csr",
    "sparse_bsr": "sparse_bsc",
    "sparse_bsc": "sparse_bsr",
}


def wrapped(dim, rank):
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {dim})"
        )
    return dim % max(rank, 1)


@rule("t", "adjoint")
def t(input):
    """The transpose of a matrix."""
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {input.dim()}D")
    return input if input.dim() < 2 else transpose(input, 0, 1)


@rule("transpose", "swapaxes", "swapdims")
def transpose(input, dim0, dim1):
    """Two dimensions exchanged, both sparse or both dense. The transpose of a compressed layout is the other one, of
    the same parts.
    """
    a, b = wrapped(dim0, input.dim()), wrapped(dim1, input.dim())
    if isinstance(input, CompressedTensor):
        return compressed_transpose(input, a, b)
    if a == b:
        return input
    order = list(range(input.dim()))
    order[a], order[b] = order[b], order[a]
    return permuted(input, order, order)


def compressed_transpose(input, a, b):
    """Two dimensions of the batch exchanged, or those of the matrix. The result is a view: of the same parts."""
    n = input.batch_dim
    if input.dense_dim():
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    kinds = ["Batch" if d < n else "Sparse" for d in (a, b)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{a}({kinds[0]}) and {b}({kinds[1]})"
        )
    first, second, values = input._parts
    size, layout = list(input.shape), input._layout
    size[a], size[b] = size[b], size[a]
    if a == b:
        values = values.view(values.shape)
    elif kinds[0] == "Batch":
        first, second, values = (part.transpose(a, b) for part in input._parts)
    else:
        values = values.transpose(n + 1, n + 2) if layout in BLOCKED else values.view(values.shape)
        layout = getattr(cresset, FLIPPED[input.kind])
    return compressed(first, second, values, size, layout)._showing(input)


@rule("permute")
def permute(input, *order, dims=None):
    """The dimensions in another order; sparse ones stay before dense ones."""
    dims = order if dims is None else dims
    dims = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    order = [wrapped(d, input.dim()) for d in dims]
    if len(order) != input.dim():
        raise RuntimeError(
            f"permute(sparse): number of dimensions in the tensor input, {input.dim()}, does not match the length of "
            f"the desired ordering of dimensions: {dims}"
        )
    if len(set(order)) != len(order):
        raise RuntimeError(f"permute(sparse): duplicate dims are not allowed, got {dims}")
    if isinstance(input, CompressedTensor):
        n = input.batch_dim
        if order == [*range(n), n + 1, n, *range(n + 2, input.dim())]:
            return transpose(input, n, n + 1)
        input = to_coo(input)
    new = permuted(input, order, dims)
    # Known to be coalesced only where the dimensions stay, as PyTorch has it: even of a single value.
    new._is_coalesced = input._is_coalesced and order == dims == list(range(input.dim()))
    return new


def permuted(input, order, dims):
    k = input.sparse_dim()
    if sorted(order[:k]) != list(range(k)):
        raise RuntimeError(
            f"permute(sparse): transpositions between sparse and dense dimensions are not allowed; got {dims} with "
            f"{k} sparse dimensions"
        )
    indices, values = input._parts
    same = order[:k] == list(range(k))
    values = values.permute(0, *(d - k + 1 for d in order[k:]))
    size = [input.shape[d] for d in order]
    return coo(
        indices if same else indices[cresset.tensor(order[:k], dtype=cresset.int64)],
        values,
        size,
        same and input._is_coalesced,
    )


@rule("unsqueeze")
def unsqueeze(input, dim):
    """A dimension of size one inserted."""
    input = to_coo(input)
    rank = input.dim() + 1
    at, k = wrapped(dim, rank), input.sparse_dim()
    indices, values = input._parts
    size = [*input.shape[:at], 1, *input.shape[at:]]
    if at > k:
        return coo(indices, values.unsqueeze(at - k + 1), size, input._is_coalesced)
    row = indices.new_zeros((1, indices.shape[1]))
    return coo(cresset.cat([indices[:at], row, indices[at:]]), values, size, input._is_coalesced)


@rule("squeeze")
def squeeze(input, dim=None):
    """Dimensions of size one removed."""
    input = to_coo(input)
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d for d in (wrapped(d, input.dim()) for d in dims) if input.shape[d] == 1}
    k = input.sparse_dim()
    indices, values = input._parts
    kept = [d for d in range(k) if d not in gone]
    values = values.reshape(values.shape[0], *(n for d, n in enumerate(input.shape[k:], k) if d not in gone))
    return coo(
        indices[cresset.tensor(kept, dtype=cresset.int64)],
        values,
        [n for d, n in enumerate(input.shape) if d not in gone],
        input._is_coalesced,
    )


@rule("select")
def select(input, dim, index):
    """One place of a dimension, without the dimension."""
    at = wrapped(dim, input.dim())
    n = input.shape[at]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {at}"
        )
    index %= n
    if isinstance(input, CompressedTensor) and at < input.batch_dim:
        parts = (part.select(at, index) for part in input._parts)
        return compressed(*parts, [*input.shape[:at], *input.shape[at + 1 :]], input._layout)
    if isinstance(input, CompressedTensor) and input.batch_dim and at < input.batch_dim + 2:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
        )
    input = to_coo(input)
    k = input.sparse_dim()
    indices, values = input._parts
    size = [*input.shape[:at], *input.shape[at + 1 :]]
    if at >= k:
        return coo(indices, values.select(at - k + 1, index), size, input._is_coalesced)
    found = indices[at] == index
    if k == 1:
        return values[found].sum(0, dtype=values.dtype)
    return coo(cresset.cat([indices[:at], indices[at + 1 :]])[:, found], values[found], size, input._is_coalesced)


@rule("narrow")
def narrow(input, dim, start, length):
    """A range of places of a dimension: a copy, since sparse tensors have no views."""
    at = wrapped(dim, input.dim())
    n = input.shape[at]
    start = int(start) % n if n and start < 0 else int(start)
    if length < 0 or start + length > n:
        raise RuntimeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({n}).")
    source, input = input, to_coo(input)
    k = input.sparse_dim()
    indices, values = input._parts
    size = [*input.shape[:at], length, *input.shape[at + 1 :]]
    if at >= k:
        result = coo(indices, values.narrow(at - k + 1, start, length), size, input._is_coalesced)
    else:
        found = (indices[at] >= start) & (indices[at] < start + length)
        moved = indices[:, found].clone()
        moved[at] -= start
        result = coo(moved, values[found], size, input._is_coalesced)
    return (
        result
        if isinstance(source, CooTensor)
        else to_layout(result, source.layout, source.block if source._layout in BLOCKED else None)
    )


@rule("index_select")
def index_select(input, dim, index):
    """The named places of a dimension, in their order, which may repeat."""
    at = wrapped(dim, input.dim())
    if index.dim() > 1 or index.dtype not in (cresset.int32, cresset.int64):
        raise IndexError(
            f"index_select(): Expected a vector of int32 or int64 for index, got {index.dtype} of shape "
            f"{list(index.shape)}"
        )
    index = index.reshape(-1).long()
    n = input.shape[at]
    if index.numel() and not (-n <= int(index.min()) and int(index.max()) < n):
        raise IndexError(f"index_select(): index out of range for tensor of size {list(input.shape)} at dimension {at}")
    index = index.remainder(n) if index.numel() else index
    input = to_coo(input)
    k = input.sparse_dim()
    indices, values = input._parts
    size = [*input.shape[:at], index.numel(), *input.shape[at + 1 :]]
    if at >= k:
        return coo(indices, values.index_select(at - k + 1, index), size, input._is_coalesced)
    # Each value goes to every place of the result that names its index.
    order = index.argsort(stable=True)
    ordered = index[order]
    first = cresset.searchsorted(ordered, indices[at].contiguous())
    counts = cresset.searchsorted(ordered, indices[at].contiguous(), right=True) - first
    which = cresset.arange(values.shape[0], device=values.device).repeat_interleave(counts)
    within = cresset.arange(which.numel(), device=values.device) - (counts.cumsum(0) - counts)[which]
    moved = indices[:, which].clone()
    moved[at] = order[first[which] + within]
    return coo(moved, values[which], size)


@rule("unbind")
def unbind(input, dim=0):
    """All places of a dimension, one by one."""
    at = wrapped(dim, input.dim())
    return tuple(select(input, at, i) for i in range(input.shape[at]))


@rule("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    """Tensors joined along a dimension."""
    tensors = list(tensors)
    if not all(isinstance(item, SparseTensor) for item in tensors):
        place = next(i for i, item in enumerate(tensors) if not isinstance(item, SparseTensor))
        raise RuntimeError(
            f"cat: Concatenating sparse tensors, but a dense tensor was found at position {place}. Bring all to one "
            "layout first"
        )
    source, tensors = tensors[0], [to_coo(item) for item in tensors]
    first = tensors[0]
    at, k = wrapped(dim, first.dim()), first.sparse_dim()
    for place, item in enumerate(tensors):
        if item.sparse_dim() != k or item.dense_dim() != first.dense_dim():
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {k}, {first.dense_dim()}, but tensor at "
                f"position {place} has {item.sparse_dim()}, {item.dense_dim()}."
            )
        if [*item.shape[:at], *item.shape[at + 1 :]] != [
            *first.shape[:at],
            *first.shape[at + 1 :],
        ]:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), "
                f"but found shape: {list(item.shape)} at position {place}"
            )
    dtype = first.dtype
    for item in tensors[1:]:
        dtype = cresset.promote_types(dtype, item.dtype)
    size = list(first.shape)
    size[at] = sum(item.shape[at] for item in tensors)
    if at >= k:
        # Values of others are zero where one has its own.
        parts, offset = [], 0
        for item in tensors:
            values = item._recorded.to(dtype)
            before = values.new_zeros((*values.shape[: at - k + 1], offset, *values.shape[at - k + 2 :]))
            after = values.new_zeros(
                (*values.shape[: at - k + 1], size[at] - offset - item.shape[at], *values.shape[at - k + 2 :])
            )
            parts.append(cresset.cat([before, values, after], at - k + 1))
            offset += item.shape[at]
        return coo(cresset.cat([item._indices() for item in tensors], 1), cresset.cat(parts), size)
    moved, offset = [], 0
    for item in tensors:
        index = item._indices().clone()
        index[at] += offset
        offset += item.shape[at]
        moved.append(index)
    joined = coo(cresset.cat(moved, 1), cresset.cat([item._recorded.to(dtype) for item in tensors]), size)
    return (
        joined
        if isinstance(source, CooTensor)
        else to_layout(joined, source.layout, source.block if source._layout in BLOCKED else None)
    )


@rule("stack")
def stack(tensors, dim=0):
    """Tensors joined along a new dimension."""
    tensors = list(tensors)
    at = wrapped(dim, tensors[0].dim() + 1)
    return cat([unsqueeze(item, at) for item in tensors], at)


def getitem(tensor, index):
    """tensor[index] for integers, None, ..., and full or stepless ranges."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(item, (cresset.Tensor, list)) for item in items):
        if len(items) == 1:
            chosen = cresset.as_tensor(items[0])
            chosen = chosen.nonzero().squeeze(1) if chosen.dtype == cresset.bool else chosen
            if chosen.dim() == 1:
                return index_select(tensor, 0, chosen)
        raise NotImplementedError(
            f"index: a {tensor.kind} tensor takes integers, ranges, None and one vector of indices; call to_dense() "
            "first"
        )
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    if Ellipsis in items:
        place = items.index(Ellipsis)
        items[place : place + 1] = [slice(None)] * (tensor.dim() - used)
    dim = 0
    for item in items:
        if item is None:
            tensor = tensor.unsqueeze(dim)
            dim += 1
        elif isinstance(item, slice):
            start, stop, step = item.indices(tensor.shape[dim])
            if step != 1:
                raise NotImplementedError(f"index: a {tensor.kind} tensor takes no steps; call to_dense() first")
            if (start, stop) != (0, tensor.shape[dim]):
                tensor = tensor.narrow(dim, start, max(stop - start, 0))
            dim += 1
        elif isinstance(tensor, SparseTensor):
            tensor = select(tensor, dim, int(item))
        else:
            tensor = tensor.select(dim, int(item))
    return tensor.coalesce() if isinstance(tensor, CooTensor) and tensor._nnz() < 2 else tensor


def sparse_mask(tensor, mask):
    """The elements of a tensor at the places of a sparse one, in its layout."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError(f"sparse_mask: expected a sparse mask, got {mask.layout}")
    if tensor.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(tensor.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    places = to_coo(mask)
    if isinstance(tensor, SparseTensor):
        k = places.sparse_dim()
        source = to_coo(tensor).coalesce()
        have, want = flattened(source._indices(), tensor.shape[:k]), flattened(places._indices(), tensor.shape[:k])
        place = cresset.searchsorted(have, want)
        near = place.clamp(max=max(have.numel() - 1, 0))
        found = (have[near] == want) if have.numel() else cresset.zeros_like(want, dtype=cresset.bool)
        values = source._recorded.new_zeros((want.numel(), *tensor.shape[k:]))
        values = (
            values.index_put((found.nonzero().squeeze(1),), source._recorded[near[found]]) if have.numel() else values
        )
    else:
        k = places.sparse_dim()
        values = tensor[tuple(places._indices().unbind(0))] if k else tensor.unsqueeze(0)
    result = coo(places._indices(), values, mask.shape, places._is_coalesced)
    return result if isinstance(mask, CooTensor) else to_layout_of_mask(result, mask)


def to_layout_of_mask(result, mask):
    """Values in the order of the mask's own parts, zeros included."""
    if mask._layout not in BLOCKED and mask._layout in BY_ROW and not mask.batch_dim:
        return mask._with(result._recorded)
    return to_layout(result, mask.layout, mask.block if mask._layout in BLOCKED else None)


@rule("view_as_real")
def view_as_real(input):
    """Complex values as pairs of real ones: a dense dimension more."""
    if not isinstance(input, CooTensor) or not input.is_complex():
        raise RuntimeError(f"view_as_real is only supported for complex sparse_coo tensors, got {input.kind}")
    pairs = cresset.view_as_real(input._recorded)
    return coo(input._indices(), pairs, (*input.shape, 2), input._is_coalesced)._showing(input)


@rule("view_as_complex")
def view_as_complex(input):
    """Pairs of real values as complex ones."""
    if not isinstance(input, CooTensor) or not input.dense_dim() or input.shape[-1] != 2:
        raise RuntimeError(
            "view_as_complex_sparse is only supported for sparse tensors with the last dim == 2 and dense_dim > 0."
        )
    numbers = cresset.view_as_complex(input._recorded)
    return coo(input._indices(), numbers, input.shape[:-1], input._is_coalesced)._showing(input)
