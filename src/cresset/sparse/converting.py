"""From every layout to every other."""

import math

import cresset
from cresset import _native

from ..ops.sparse import row_begins, row_of_each, sort_rows
from .compressed import BLOCKED, BY_ROW, LAYOUTS, CompressedTensor, batch_items, batched, compressed
from .coo import CooTensor, coo, dense_to_coo, flattened, summed_at
from .tensor import LAYOUT_NAMES


def to_layout(tensor, layout, blocksize=None, dense_dim=None):
    """The tensor in another layout; the tensor itself if it has it."""
    blocksize = (
        (blocksize, blocksize) if isinstance(blocksize, int) else None if blocksize is None else tuple(blocksize)
    )
    if blocksize is not None and len(blocksize) != 2:
        raise RuntimeError(f"to_sparse: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if layout in BLOCKED:
        if blocksize is None:
            if getattr(tensor, "_layout", None) in BLOCKED:
                blocksize = tensor.block
            else:
                raise RuntimeError(
                    f"to_sparse: conversion from {LAYOUT_NAMES[str(tensor.layout)]} to {LAYOUT_NAMES[str(layout)]} "
                    "requires blocksize specified"
                )
        if min(blocksize) <= 0:
            raise RuntimeError(f"to_sparse: blocksize needs to be a tuple of two positive integers, got {blocksize}")
    elif blocksize is not None:
        raise RuntimeError(
            f"to_sparse: conversion to {LAYOUT_NAMES[str(layout)]} does not use blocksize, got {blocksize}"
        )
    if tensor.layout == layout and (blocksize is None or tensor.block == blocksize):
        return tensor
    if layout == cresset.strided:
        return tensor.to_dense()
    if layout == cresset.sparse_coo:
        return to_coo(tensor)
    if layout not in LAYOUTS:
        raise RuntimeError(f"to_sparse: unexpected layout {layout}")
    if not isinstance(tensor, (CooTensor, CompressedTensor)):
        return dense_to_compressed(tensor, layout, blocksize, dense_dim)
    if isinstance(tensor, CompressedTensor) and tensor.batch_dim:
        return batched(
            [to_layout(item, layout, blocksize) for item in batch_items(tensor)], tensor.shape[: tensor.batch_dim]
        )
    return coo_to_compressed(to_coo(tensor), layout, blocksize)


def dense_to_compressed(tensor, layout, blocksize, dense_dim):
    """The compressed form of a dense tensor; what stands before the matrix dimensions is a batch."""
    dense = 0 if dense_dim is None else dense_dim
    if tensor.dim() < 2 + dense:
        raise RuntimeError(
            f"to_sparse: expected a tensor of at least {2 + dense} dimensions for {LAYOUT_NAMES[str(layout)]}, got "
            f"{tensor.dim()}"
        )
    batch = tensor.shape[: tensor.dim() - 2 - dense]
    if not batch:
        return coo_to_compressed(dense_to_coo(tensor, 2), layout, blocksize)
    matrices = tensor.reshape(math.prod(batch), *tensor.shape[len(batch) :])
    if len(matrices) == 0:
        name = str(layout).removeprefix("torch.sparse_")
        raise RuntimeError(
            f"to_sparse_{name}: Expected product of batch dimensions to be non-zero, got shape {tuple(tensor.shape)}"
        )
    return batched([coo_to_compressed(dense_to_coo(m, 2), layout, blocksize) for m in matrices], batch)


def to_coo(tensor):
    """The coordinate form; the tensor itself if it has it."""
    if isinstance(tensor, CooTensor):
        return tensor
    if not isinstance(tensor, CompressedTensor):
        return dense_to_coo(tensor)
    if tensor.batch_dim:
        items = [to_coo(item) for item in batch_items(tensor)]
        joined = cresset.stack(items)
        shape, batch = joined.shape, tensor.shape[: tensor.batch_dim]
        index = joined._indices()
        places = flattened(index[:1], shape[:1])
        rows = []
        for n in reversed(batch):
            rows.append(places % n)
            places = places // n
        return coo(cresset.cat([cresset.stack(rows[::-1]), index[1:]]), joined._parts[1], tensor.shape, True)
    first, second, values = tensor._parts
    along, across = row_of_each(first), second.long()
    rows, columns = (along, across) if tensor.by_row else (across, along)
    if tensor._layout not in BLOCKED:
        return coo(cresset.stack([rows, columns]), values, tensor.shape, tensor.by_row).coalesce()
    high, wide = tensor.block
    rows = (rows * high).view(-1, 1, 1) + cresset.arange(high, device=rows.device).view(1, -1, 1)
    columns = (columns * wide).view(-1, 1, 1) + cresset.arange(wide, device=rows.device).view(1, 1, -1)
    rows, columns = (part.expand(len(values), high, wide).reshape(-1) for part in (rows, columns))
    return coo(cresset.stack([rows, columns]), values.flatten(0, 2), tensor.shape).coalesce()


def coo_to_compressed(tensor, layout, blocksize=None):
    """The compressed form of a matrix of coordinates (with dense dimensions, if any)."""
    if tensor.sparse_dim() != 2:
        raise RuntimeError(
            f"to_sparse: conversion from Sparse to {LAYOUT_NAMES[str(layout)]} for input tensors with sparse_dim()!=2 "
            f"is not supported, got {tensor.sparse_dim()}"
        )
    tensor = tensor.coalesce()
    (rows, columns), values = tensor._parts[0].unbind(0), tensor._parts[1]
    if layout in BLOCKED:
        return coo_to_blocks(rows, columns, values, tensor.shape, layout, blocksize)
    along, across, count = (rows, columns, tensor.shape[0]) if layout in BY_ROW else (columns, rows, tensor.shape[1])
    if layout in BY_ROW:  # coalesced: they are in this order
        return compressed(row_begins(along, count), across, values, tensor.shape, layout)
    begin, order = sort_rows(along, count)
    return compressed(begin, across[order], values[order], tensor.shape, layout)


def coo_to_blocks(rows, columns, values, size, layout, blocksize):
    high, wide = blocksize
    if size[0] % high or size[1] % wide:
        raise RuntimeError(
            f"to_sparse: tensor sparse size ({size[0]},{size[1]}) must be divisible by given blocksize ({high},{wide})"
        )
    counts = (size[0] // high, size[1] // wide)
    block_row, block_column = rows // high, columns // wide
    key = block_row * counts[1] + block_column if layout in BY_ROW else block_column * counts[0] + block_row
    blocks, which = key.unique(return_inverse=True)
    across = counts[1] if layout in BY_ROW else counts[0]
    filled = summed_at(blocks.numel() * high * wide, (which * high + rows % high) * wide + columns % wide, values)
    filled = filled.reshape(blocks.numel(), high, wide, *values.shape[1:])
    begin, _ = sort_rows(blocks // max(across, 1), counts[0] if layout in BY_ROW else counts[1])
    return compressed(begin, blocks % max(across, 1), filled, size, layout)


def compressed_to_dense(tensor):
    """A compressed tensor with all its zeros."""
    if not tensor.batch_dim:
        return to_coo(tensor).to_dense()
    if math.prod(tensor.shape[: tensor.batch_dim]) == 0:
        return cresset.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    dense = cresset.stack([item.to_dense() for item in batch_items(tensor)])
    return dense if tensor.batch_dim == 1 else dense.reshape(tensor.shape).clone()  # the result is no view


def rows_of(tensor):
    """A sparse matrix by its rows: (where each begins, columns, values), for the products of native code."""
    if isinstance(tensor, CompressedTensor) and tensor._layout is _native.sparse_csr:
        return tensor._parts
    if isinstance(tensor, CompressedTensor):
        tensor = to_coo(tensor)
    (rows, columns), values = tensor._parts[0].unbind(0), tensor._parts[1]
    if tensor._is_coalesced:
        return row_begins(rows, tensor.shape[0]), columns, values
    begin, order = sort_rows(rows, tensor.shape[0])
    return begin, columns[order], values[order]
