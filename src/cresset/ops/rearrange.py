"""Shapes anew: flattening, moving and turning dimensions, broadcasting, repeating; views wherever PyTorch has views."""

import math
from typing import Any

import cresset

from .._native import forget_base, name_node
from .dimensions import is_integer, sizes, wrap_dim
from .registry import batch, function, onnx, operator, placement

flip = operator("flip", """The elements in reverse order along `dims`.

    >>> cresset.flip(cresset.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """)  # fmt: skip


@flip.derivative
def _(grad, dims):
    yield lambda: grad.flip(dims)


roll = operator("roll", """The elements moved by `shifts` along `dims`, those beyond the end to the front.

    Without `dims` the tensor is rolled as if it were flat.

    >>> cresset.roll(cresset.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """)  # fmt: skip


@roll.derivative
def _(grad, shifts, dims):
    yield lambda: grad.roll([-shift for shift in shifts], dims)


repeat = operator("repeat", """The whole tensor `repeats` times along each dimension; further dimensions may come in
    front.

    >>> cresset.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """)  # fmt: skip


@repeat.derivative
def _(grad, input_info, repeats):
    def back():
        lead = len(repeats) - len(input_info.shape)
        if 0 in repeats:
            return grad.new_zeros(input_info.shape)
        shape, copies = [], []
        for dim, count in enumerate(repeats):
            copies.append(len(shape))
            shape.append(count)
            if dim >= lead:
                shape.append(input_info.shape[dim - lead])
        return grad.reshape(shape).sum(copies) if copies else grad

    yield back


tril = operator("tril", """The lower triangle of matrices; zero above the diagonal number `diagonal`.

    >>> cresset.tril(cresset.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """)  # fmt: skip


@tril.derivative
def _(grad, diagonal):
    yield lambda: grad.tril(diagonal)


triu = operator("triu", """The upper triangle of matrices; zero below the diagonal number `diagonal`.

    >>> cresset.triu(cresset.ones(2, 3))
    tensor([[1., 1., 1.],
            [0., 1., 1.]])
    """)  # fmt: skip


@triu.derivative
def _(grad, diagonal):
    yield lambda: grad.triu(diagonal)


_repeat_positions = operator("repeat_positions")


@function(method=True)
def flatten(input, start_dim=0, end_dim=-1):
    """Make the dimensions from `start_dim` to `end_dim` one dimension.

    >>> cresset.flatten(cresset.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    ndim = input.ndim
    start, end = wrap_dim(start_dim, ndim, "flatten"), wrap_dim(end_dim, ndim, "flatten")
    if start > end:
        raise RuntimeError(
            f"flatten: start_dim cannot come after end_dim; they are {start_dim} and {end_dim} of {ndim} dimensions"
        )
    if ndim == 0:
        return input.reshape(1)
    if start == end:
        return input
    shape = input.shape
    return input.reshape((*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@function(method=True)
def unflatten(input, dim, sizes):
    """Split dimension `dim` into dimensions of the given sizes; one of them may be -1.

    >>> cresset.unflatten(cresset.zeros(2, 12), 1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    if input.ndim == 0:
        raise RuntimeError(f"unflatten: Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, input.ndim, "unflatten")
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length, known = input.size(dim), math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known and length % known == 0:
        sizes = tuple(length // known if size == -1 else size for size in sizes)
    if -1 in sizes or math.prod(sizes) != length:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({length}) "
            "in the input tensor"
        )
    return input.view((*input.shape[:dim], *sizes, *input.shape[dim + 1 :]))


@function(method=True)
def ravel(input):
    """All elements in one dimension.

    >>> cresset.ravel(cresset.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return input.contiguous().view(-1)


def _whole_numbers(dims):
    """A dim, or several, as ints. A tensor counts if it is one whole number."""
    dims = sizes(dims)
    for dim in dims:
        if not is_integer(dim):
            raise TypeError(f"movedim(): a dim must be int, not {type(dim).__name__} {dim}")
    return tuple(int(dim) for dim in dims)


@function(method=True, name="moveaxis")
@function(method=True)
def movedim(input, source, destination):
    """Move dimensions to new positions; the others keep their order.

    Args:
        source: a dim, or several.
        destination: where each of them goes.

    >>> cresset.movedim(cresset.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    ndim = input.ndim
    source, destination = (_whole_numbers(dims) for dims in (source, destination))
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same "
            f"number of dims as destination ({list(destination)} dims)"
        )
    sources = [wrap_dim(dim, ndim, "movedim") for dim in source]
    destinations = [wrap_dim(dim, ndim, "movedim") for dim in destination]
    for name, given, wrapped in (("source", source, sources), ("destination", destination, destinations)):
        if len(set(wrapped)) < len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return input.view(())
    order = [dim for dim in range(ndim) if dim not in sources]
    for to, dim in sorted(zip(destinations, sources)):
        order.insert(to, dim)
    return input.permute(order)


@function(method=True)
def swapaxes(input, axis0, axis1):
    """Exchange two dimensions; NumPy's name for `transpose`.

    >>> cresset.swapaxes(cresset.zeros(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    return input.transpose(axis0, axis1)


@function(method=True)
def swapdims(input, dim0, dim1):
    """Exchange two dimensions; another name for `transpose`.

    >>> cresset.swapdims(cresset.zeros(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    return input.transpose(dim0, dim1)


@function(method="only")
def swapaxes_(input, axis0, axis1):
    """Exchange two dimensions of this tensor itself.

    >>> cresset.zeros(2, 3).swapaxes_(0, 1).shape
    torch.Size([3, 2])
    """
    return input.transpose_(axis0, axis1)


@function(method="only")
def swapdims_(input, dim0, dim1):
    """Exchange two dimensions of this tensor itself.

    >>> cresset.zeros(2, 3).swapdims_(0, 1).shape
    torch.Size([3, 2])
    """
    return input.transpose_(dim0, dim1)


@function(method=True)
def adjoint(input):
    """The conjugate transpose of each matrix.

    >>> cresset.adjoint(cresset.tensor([[1j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if input.ndim == 1:
        raise RuntimeError(
            "adjoint: tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    transposed = input.transpose(-2, -1) if input.ndim else input
    return transposed.conj() if input.is_complex() else transposed


@function(method=True)
def rot90(input, k=1, dims=(0, 1)):
    """Turn the plane of two dimensions by `k` quarter turns, from the first of `dims` towards the second.

    >>> cresset.rot90(cresset.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"rot90: expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (wrap_dim(dim, input.ndim, "rot90") for dim in dims)
    if first == second:
        raise RuntimeError(
            f"rot90: expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    if turns == 0:
        return name_node(input.clone(), "Rot90Backward0")
    if turns == 2:
        return name_node(input.flip((first, second)), "Rot90Backward0")
    turned = forget_base(input.flip((second if turns == 1 else first,)).transpose(first, second))
    return name_node(turned, "Rot90Backward0")


@function(method=True)
def fliplr(input):
    """Reverse the columns (dimension 1).

    >>> cresset.fliplr(cresset.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d. Got {input.ndim}-d")
    return input.flip((1,))


@function(method=True)
def flipud(input):
    """Reverse the rows (dimension 0).

    >>> cresset.flipud(cresset.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input.ndim < 1:
        raise RuntimeError(f"flipud: Input must be >= 1-d. Got {input.ndim}-d")
    return input.flip((0,))


@function(method=True)
def tile(input, dims, *more_dims):
    """Repeat the tensor `dims[i]` times along each dimension, counted from the last if there are fewer `dims`.

    >>> cresset.tile(cresset.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = sizes(dims, more_dims)
    return input.repeat((1,) * (input.ndim - len(counts)) + counts)


@function(method=True)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Repeat each element (or each slice along `dim`) in place.

    With a single tensor of counts, the result is the index that does this: `i` stands there `input[i]` times.

    Args:
        repeats: how often, for all or for each slice.
        dim: the dimension to repeat along; None flattens first.
        output_size: the size of the result along `dim`, where known.

    >>> cresset.repeat_interleave(cresset.tensor([7, 8, 9]), cresset.tensor([2, 0, 1]))
    tensor([7, 7, 9])
    """
    if repeats is None:
        return _repeat_positions(input, output_size=output_size)
    if dim is None:
        input, dim = input.flatten(), 0
    dim = wrap_dim(dim, input.ndim, "repeat_interleave")
    if not isinstance(repeats, cresset.Tensor) and is_integer(repeats):
        repeats = int(repeats)
        if repeats < 0:
            raise RuntimeError(f"repeat_interleave: Repeats must be non-negative, got {repeats}")
        if output_size is not None and output_size != repeats * input.size(dim):
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {repeats * input.size(dim)} but got {output_size}"
            )
        shape = input.shape
        spread = input.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
        spread = spread.clone(memory_format=cresset.contiguous_format)  # never a view, also of one time
        return spread.reshape((*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))
    if not isinstance(repeats, cresset.Tensor):
        raise TypeError(f"repeat_interleave: argument 'repeats' must be int or Tensor, not {type(repeats).__name__}")
    if repeats.ndim > 1:
        raise RuntimeError(f"repeat_interleave: repeats must be 0-dim or 1-dim tensor, got {repeats.ndim} dims")
    if repeats.ndim == 0 or repeats.size(0) == 1:
        repeats = repeats.reshape(1).expand(input.size(dim))
    elif repeats.size(0) != input.size(dim):
        raise RuntimeError(
            "repeat_interleave: repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {repeats.size(0)} and input.size({dim}) = {input.size(dim)}"
        )
    return input.index_select(dim, _repeat_positions(repeats, output_size=output_size))


@function(method=True, out=True)
def take_along_dim(input, indices, dim=None):
    """Take the elements that `indices` names along `dim`, modulo its size; the other dimensions broadcast.

    >>> x = cresset.tensor([[30, 10, 20]])
    >>> cresset.take_along_dim(x, x.argsort(1), dim=1)
    tensor([[10, 20, 30]])
    """
    if indices.dtype != cresset.int64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long (int64) but got {indices.dtype}")
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, input.ndim, "take_along_dim")
    if input.ndim == 0:
        return input.gather(0, indices)
    shape = list(broadcast_shapes(_with_size(input.shape, dim, 1), _with_size(indices.shape, dim, 1)))
    input = input.expand(_with_size(shape, dim, input.size(dim)))
    if input.size(dim):
        indices = indices.remainder(input.size(dim))
    return input.gather(dim, indices.expand(_with_size(shape, dim, indices.size(dim))))


def _with_size(shape, dim, size):
    """`shape` with `size` at `dim`."""
    return (*shape[:dim], size, *shape[dim + 1 :])


@function
def broadcast_shapes(*shapes) -> Any:
    """The shape that results when tensors of these shapes are combined elementwise.

    >>> cresset.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(
                "broadcast_shapes: Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{shape}"
            )
    lists = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result = [1] * max(map(len, lists), default=0)
    for place, shape in enumerate(lists):
        for dim, size in enumerate(reversed(shape), start=1):
            if size < 0:
                raise ValueError(
                    f"broadcast_shapes: Attempting to broadcast a dimension with negative length! Got {size} in {shape}"
                )
            if size != 1 and result[-dim] != size:
                if result[-dim] != 1:
                    raise RuntimeError(
                        f"broadcast_shapes: Attempting to broadcast a dimension of length {size} at {-dim}! "
                        f"Mismatching argument at index {place} had {shape}; but expected shape should be "
                        f"broadcastable to {result}"
                    )
                result[-dim] = size
    return cresset.Size(result)


@function
def broadcast_tensors(*tensors) -> tuple:
    """Views of the tensors, all expanded to their common shape.

    >>> a, b = cresset.broadcast_tensors(cresset.zeros(2, 1), cresset.zeros(3))
    >>> a.shape, b.shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, cresset.Tensor):
            raise TypeError(f"broadcast_tensors: expected Tensor as element {position}, got {type(tensor).__name__}")
    shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(tensor if tensor.shape == shape else tensor.expand(shape) for tensor in tensors)


@function(method=True)
def broadcast_to(input, size, *more_sizes):
    """A view expanded to the shape `size`.

    >>> cresset.broadcast_to(cresset.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return input.expand(sizes(size, more_sizes))


@function(method="only")
def expand_as(input, other):
    """A view expanded to the shape of `other`.

    >>> cresset.zeros(3).expand_as(cresset.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return input.expand(other.shape)


@function(method="only")
def view_as(input, other):
    """A view with the shape of `other`.

    >>> cresset.zeros(6).view_as(cresset.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return input.view(other.shape)


@function(method="only")
def reshape_as(input, other):
    """The elements in the shape of `other`.

    >>> cresset.zeros(6).reshape_as(cresset.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return input.reshape(other.shape)


@function(method="only")
def sum_to_size(input, size, *more_sizes):
    """Sum until the shape is `size`: the reverse of broadcasting.

    >>> cresset.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    size, shape = sizes(size, more_sizes), input.shape
    lead = len(shape) - len(size)
    if lead < 0 or any(want not in (1, have) for want, have in zip(size, shape[lead:])):
        raise RuntimeError(f"sum_to_size: size {list(size)} is not expandable to size {list(shape)}.")
    if not size:
        return input.sum()
    dims = [dim for dim in range(len(shape)) if dim < lead or (size[dim - lead] == 1 and shape[dim] != 1)]
    if not dims:
        return input
    summed = input.sum(dims, keepdim=True)
    return forget_base(summed.view(size)) if lead else summed


@function
def unravel_index(indices, shape) -> tuple:
    """The coordinates, one tensor per dimension, of flat positions in a tensor of shape `shape`.

    >>> cresset.unravel_index(cresset.tensor([0, 5]), (2, 3))
    (tensor([0, 1]), tensor([0, 2]))
    """
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == cresset.bool:
        raise TypeError(f"unravel_index: expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"unravel_index: expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int) for size in shape):
        raise TypeError(f"unravel_index: expected 'shape' sequence to only contain ints, but got {shape}")
    if any(size < 0 for size in shape):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, but got {shape}")
    coordinates = []
    indices = indices.to(cresset.int64)
    for size in reversed(shape):
        coordinates.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(coordinates))


# --- inside vmap ---

batch("tril", "triu", "tril_", "triu_")("leading")


@batch("repeat")
def _(call):
    repeats = call.args[1]
    if len(repeats) < call.rank():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return call.padded(0, len(repeats)).repeat(1, *repeats)


@batch("flip")
def _(call):
    return call.with_number(lambda value: value.flip([call.dim(dim) for dim in call.args[1]]))


@batch("roll")
def _(call):
    shifts, dims = call.args[1:]
    if not dims:
        value = call.front()
        return value.reshape(call.size, -1).roll(shifts, 1).view(value.shape)
    return call.with_number(lambda value: value.roll(shifts, [call.dim(dim) for dim in dims]))


# --- as ONNX ---


@onnx("repeat")
def _(g, input, repeats):
    missing = len(repeats) - len(input.shape)
    return g.op("Tile", g.unsqueeze(input, list(range(missing))), g.sizes(repeats))


@onnx("flip")
def _(g, input, dims):
    axes = [d % len(input.shape) for d in dims]
    if not axes:
        return input
    count = len(axes)
    return g.op(
        "Slice", input, g.ints([-1] * count), g.ints([-(2**63) + 1] * count), g.ints(axes), g.ints([-1] * count)
    )


@onnx("roll")
def _(g, input, shifts, dims):
    shifts = [shifts] if not isinstance(shifts, (tuple, list)) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    if not dims:
        return g.reshape(_roll(g, g.reshape(input, [-1]), 0, shifts[0]), input.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        input = _roll(g, input, dim % len(g.result.shape), shift)
    return input


def _roll(g, x, axis, shift):
    end = 2**63 - 1
    return g.op("Concat", g.slice(x, axis, -shift, end), g.slice(x, axis, 0, -shift), axis=axis) if shift != 0 else x


@onnx("repeat_positions")
def _(g, repeats):
    """The index of each element, as often as `repeats` says: searching the running totals."""
    totals = g.op("CumSum", g.cast(repeats, repeats.dtype, cresset.int64), g.number(0, cresset.int64))
    count = g.op("ReduceMax", totals, keepdims=0)
    places = g.unsqueeze(g.op("Range", g.number(0, cresset.int64), count, g.number(1, cresset.int64)), [1])
    passed = g.op("LessOrEqual", g.unsqueeze(totals, [0]), places)
    return g.reduce("ReduceSum", g.op("Cast", passed, to=7), [1], keepdims=False)


@onnx("tril", "triu")
def _(g, input, diagonal):
    upper = int(g.call.name == "triu")
    if input.dtype is cresset.bool:  # runtimes have it for numbers
        found = g.op(
            "Trilu", g.cast(input, cresset.bool, cresset.int64), g.number(diagonal, cresset.int64), upper=upper
        )
        return g.cast(found, cresset.int64, cresset.bool)
    return g.op("Trilu", input, g.number(diagonal, cresset.int64), upper=upper)


# How they lie on several processes: words of distributed/tensor/words.py.
placement("repeat")("repeated")
placement("flip", "roll")("turned")
placement("tril", "triu")("triangle")
