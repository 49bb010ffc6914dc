"""Joining tensors and splitting them: stacks, splits, grids and products of vectors, blocks on a diagonal."""

import functools
import warnings
from typing import Any

import cresset

from .._native import name_node
from .dimensions import is_integer, sequence, sizes, wrap_dim
from .registry import alias, batch, function, onnx, operator, placement

cat = operator("cat", """Tensors joined along `dim`, in which alone their sizes may differ.

    >>> cresset.cat([cresset.tensor([1, 2]), cresset.tensor([3])])
    tensor([1, 2, 3])
    """, autocast="promote", casts_out=True)  # fmt: skip
alias("cat", "concat", "concatenate")


@cat.derivative
def _(grad, tensors_info, dim):
    def back():
        grads, start = [], 0
        for info in tensors_info:
            if tuple(info.shape) == (0,):  # an empty vector may stand among tensors of any shape
                grads.append(grad.new_zeros(0))
                continue
            grads.append(grad.narrow(dim, start, info.shape[dim]))
            start += info.shape[dim]
        return grads

    yield back


stack = operator("stack", """Tensors of one shape side by side along a new dimension `dim`.

    >>> cresset.stack([cresset.tensor([1, 2]), cresset.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """, autocast="promote", casts_out=True)  # fmt: skip


@stack.derivative
def _(grad, dim):
    yield lambda: grad.unbind(dim)


def _each(tensors, raise_dims):
    """`raise_dims` of one tensor, or of each of several given one by one or as one list."""
    if len(tensors) == 1:
        if isinstance(tensors[0], cresset.Tensor):
            return raise_dims(tensors[0])
        tensors = tensors[0]
    return tuple(raise_dims(tensor) for tensor in tensors)


@function
def atleast_1d(*tensors) -> Any:
    """Each tensor with at least one dimension.

    >>> cresset.atleast_1d(cresset.tensor(3))
    tensor([3])
    """
    return _each(tensors, _to_1d)


@function
def atleast_2d(*tensors) -> Any:
    """Each tensor with at least two dimensions; a vector becomes a row.

    >>> cresset.atleast_2d(cresset.tensor([3, 4]))
    tensor([[3, 4]])
    """
    return _each(tensors, _to_2d)


@function
def atleast_3d(*tensors) -> Any:
    """Each tensor with at least three dimensions; a vector lies along the middle one, a matrix gets a last one.

    >>> cresset.atleast_3d(cresset.zeros(2), cresset.zeros(2, 3))[1].shape
    torch.Size([2, 3, 1])
    """
    return _each(tensors, _to_3d)


def _to_1d(tensor):
    return tensor.reshape(1) if tensor.ndim == 0 else tensor


def _to_2d(tensor):
    return tensor.reshape(1, 1) if tensor.ndim == 0 else tensor.unsqueeze(0) if tensor.ndim == 1 else tensor


def _to_3d(tensor):
    if tensor.ndim == 0:
        return tensor.reshape(1, 1, 1)
    return _to_2d(tensor).unsqueeze(-1) if tensor.ndim < 3 else tensor


@function
def hstack(tensors, *, out=None):
    """Join side by side: along the columns, or vectors end to end.

    >>> cresset.hstack([cresset.tensor([1, 2]), cresset.tensor([3])])
    tensor([1, 2, 3])
    """
    tensors = [_to_1d(tensor) for tensor in sequence(tensors, "hstack")]
    return cresset.cat(tensors, 0 if tensors[0].ndim == 1 else 1, out=out)


@function(name="row_stack")
@function
def vstack(tensors, *, out=None):
    """Join on top of each other: along the rows; a vector counts as a row.

    >>> cresset.vstack([cresset.tensor([1, 2]), cresset.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cresset.cat([_to_2d(tensor) for tensor in sequence(tensors, "vstack")], 0, out=out)


@function
def dstack(tensors, *, out=None):
    """Join in depth: along dimension 2.

    >>> cresset.dstack([cresset.tensor([1, 2]), cresset.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cresset.cat([_to_3d(tensor) for tensor in sequence(tensors, "dstack")], 2, out=out)


@function
def column_stack(tensors, *, out=None):
    """Join as columns; a vector counts as a column.

    >>> cresset.column_stack([cresset.tensor([1, 2]), cresset.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [t.reshape(-1, 1) if t.ndim < 2 else t for t in sequence(tensors, "column_stack")]
    return cresset.cat(columns, 1, out=out)


def _where_to_split(who, indices_or_sections, sections, indices):
    """The one of PyTorch's three spellings that was used: an int, or a list of ints."""
    given = [value for value in (indices_or_sections, sections, indices) if value is not None]
    if len(given) != 1:
        raise TypeError(f"{who}: expected the number of sections or the indices to split at, got {len(given)} of them")
    where = given[0]
    if isinstance(where, cresset.Tensor):
        if where.ndim > 1:
            raise RuntimeError(
                f"{who} expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {where.ndim} dims"
            )
        if where.dtype != cresset.int64:
            name = where.type().rpartition(".")[2].removesuffix("Tensor")
            raise RuntimeError(f"{who} expected tensor_indices_or_sections to have dtype of long, but got {name}")
        where = where.tolist()
    if is_integer(where):
        return int(where)
    if not isinstance(where, (tuple, list)):
        raise TypeError(f"{who}: expected an int, a tuple of ints or a Tensor, not {type(where).__name__}")
    return where


def _split_at(input, bounds, dim):
    """The slices `[bounds[0]:bounds[1]]`, `[bounds[1]:bounds[2]]`, … along `dim`."""
    pieces = []
    for begin, end in zip(bounds, bounds[1:]):
        start, stop, _ = slice(begin, end).indices(input.size(dim))
        pieces.append(input.narrow(dim, start, max(stop - start, 0)))
    return tuple(pieces)


def _split(who, input, where, dim):
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"{who}: number of sections must be larger than 0, got {where}")
        if where >= 2**31:
            raise RuntimeError(f"{who}: {where} sections are too many, there can be at most {2**31 - 1}")
        small, larger = divmod(input.size(dim), where)
        return _split_at(input, [section * small + min(section, larger) for section in range(where + 1)], dim)
    return _split_at(input, [0, *where, input.size(dim)], dim)


@function(method=True)
def tensor_split(
    input, indices_or_sections=None, dim=0, *, sections=None, indices=None, tensor_indices_or_sections=None
):
    """Split into views along `dim`, at indices or into sections that differ in size by at most one.

    Args:
        indices_or_sections: the number of sections (an int), or the indices to split at; either may be a tensor.
        sections, indices, tensor_indices_or_sections: the same, by the keywords PyTorch has for it.

    >>> cresset.tensor_split(cresset.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    indices = tensor_indices_or_sections if indices is None else indices
    where = _where_to_split("tensor_split", indices_or_sections, sections, indices)
    return _split("tensor_split", input, where, wrap_dim(dim, input.ndim, "tensor_split"))


def _even_split(who, input, least_ndim, dim, first, more, *named):
    """`tensor_split` for at least `least_ndim` dimensions, into sections of equal size only."""
    if input.ndim < least_ndim:
        raise RuntimeError(
            f"torch.{who} requires a tensor with at least {least_ndim} dimension, "
            f"but got a tensor with {input.ndim} dimensions!"
        )
    where = _where_to_split(who, sizes(first, more) if more else first, *named)
    if isinstance(where, int) and (where == 0 or input.size(dim) % where):
        raise RuntimeError(
            f"torch.{who} attempted to split along dimension {dim}, but the size of the dimension {input.size(dim)} "
            f"is not divisible by the split_size {where}!"
        )
    return _split(who, input, where, dim)


@function(method=True)
def hsplit(input, indices_or_sections=None, *more_indices, sections=None, indices=None) -> tuple:
    """Split along the columns (a vector: along its only dimension) into equal sections or at indices.

    >>> cresset.hsplit(cresset.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    dim = 0 if input.ndim == 1 else 1
    return _even_split("hsplit", input, 1, dim, indices_or_sections, more_indices, sections, indices)


@function(method=True)
def vsplit(input, indices_or_sections=None, *more_indices, sections=None, indices=None) -> tuple:
    """Split along the rows into equal sections or at indices.

    >>> cresset.vsplit(cresset.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _even_split("vsplit", input, 2, 0, indices_or_sections, more_indices, sections, indices)


@function(method=True)
def dsplit(input, indices_or_sections=None, *more_indices, sections=None, indices=None) -> tuple:
    """Split along dimension 2 into equal sections or at indices.

    >>> [piece.shape for piece in cresset.dsplit(cresset.zeros(1, 2, 4), [1])]
    [torch.Size([1, 2, 1]), torch.Size([1, 2, 3])]
    """
    return _even_split("dsplit", input, 3, 2, indices_or_sections, more_indices, sections, indices)


@functools.cache
def _warn_of_indexing():
    warnings.warn(
        "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=4
    )


@function
def meshgrid(*tensors, indexing=None) -> tuple:
    """The coordinates of a grid: one tensor per vector, all of the grid's shape.

    Args:
        tensors: vectors (or 0-d tensors), one by one or as one list.
        indexing: "ij" (the default): the first vector runs along dimension 0; "xy": along dimension 1, as in plots.

    >>> x, y = cresset.meshgrid(cresset.tensor([1, 2]), cresset.tensor([3, 4]), indexing="xy")
    >>> x, y
    (tensor([[1, 2],
            [1, 2]]), tensor([[3, 3],
            [4, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    sequence(tensors, "meshgrid")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(f"meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {tensor.shape}")
        if tensor.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"meshgrid: expects all tensors to have the same dtype, got {tensors[0].dtype} and {tensor.dtype}"
            )
        if tensor.device != tensors[0].device:
            raise RuntimeError(
                f"meshgrid: expects all tensors to have the same device, got {tensors[0].device} and {tensor.device}"
            )
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing is None:
        _warn_of_indexing()
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[:2] = 1, 0
    shape = [tensors[position].numel() for position in order]
    grids = []
    for position, tensor in enumerate(tensors):
        axis = [1] * len(tensors)
        axis[order.index(position)] = tensor.numel()
        grids.append(tensor.reshape(axis).expand(shape))
    return tuple(grids)


@function
def cartesian_prod(*tensors):
    """All combinations of one element from each vector, as the rows of a matrix.

    >>> cresset.cartesian_prod(cresset.tensor([1, 2]), cresset.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for tensor in sequence(tensors, "cartesian_prod"):
        if tensor.ndim != 1:
            raise RuntimeError(f"cartesian_prod: Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return cresset.stack([grid.reshape(-1) for grid in meshgrid(*tensors, indexing="ij")], 1)


@function
def combinations(input, r=2, with_replacement=False):
    """All combinations of `r` elements of a vector, as the rows of a matrix, in the order of `itertools`.

    >>> cresset.combinations(cresset.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.ndim != 1:
        raise RuntimeError(f"combinations: Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    length = input.numel()
    position = cresset.arange(length, device=input.device)
    chosen = cresset.ones((length,) * r, dtype=cresset.bool, device=input.device)
    for dim in range(r - 1):
        earlier = position.reshape([-1 if d == dim else 1 for d in range(r)])
        later = position.reshape([-1 if d == dim + 1 else 1 for d in range(r)])
        chosen = chosen & (earlier <= later if with_replacement else earlier < later)
    return name_node(input[chosen.nonzero()], "StackBackward0")


@function
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal and zeros elsewhere; a vector counts as a row.

    >>> cresset.block_diag(cresset.tensor([[1, 2]]), cresset.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if not tensors:
        return cresset.empty(1, 0)
    for position, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {position} has {tensor.ndim} dimensions"
            )
    blocks = [_to_2d(tensor) for tensor in tensors]
    width, before, rows = sum(block.size(1) for block in blocks), 0, []
    for block in blocks:
        height, after = block.size(0), width - before - block.size(1)
        rows.append(cresset.cat([block.new_zeros(height, before), block, block.new_zeros(height, after)], 1))
        before += block.size(1)
    return name_node(cresset.cat(rows, 0), "BlockDiagBackward0")


# --- inside vmap ---


@batch("cat", "stack")
def _(call):
    """Those without a batch are expanded, unless they are empty vectors, which cat skips."""
    values = [
        call.expanded(value, dim)
        for given, value, dim in zip(call.given[0], call.args[0], call.dims[0], strict=True)
        if not (
            call.name == "cat"
            and given.dim() == 1
            and given.numel() == 0
            and any(other.dim() > 1 for other in call.given[0])
        )
    ]
    rank = values[0].dim() - 1
    if call.name == "cat" and not rank:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    return call.run(values, call.dim(call.args[1], rank + (call.name == "stack")))


# --- as ONNX ---


@onnx("cat")
def _(g, tensors, dim):
    dtype = g.result.dtype
    kept = [t for t in tensors if t.shape != (0,)]  # such a one joins any shape
    return g.op("Concat", *(g.cast(t, t.dtype, dtype) for t in kept), axis=dim % len(g.result.shape))


@onnx("stack")
def _(g, tensors, dim):
    axis, dtype = dim % len(g.result.shape), g.result.dtype
    return g.op("Concat", *(g.unsqueeze(g.cast(t, t.dtype, dtype), [axis]) for t in tensors), axis=axis)


# How they lie on several processes: words of distributed/tensor/words.py.
placement("cat")("joined")
placement("stack")("stacked")
