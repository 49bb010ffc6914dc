"""Views: documentation and derivatives of the operators that show the same memory differently."""

import math
import warnings
from typing import Any

import cresset

from .registry import batch, function, functions_in_place, onnx, operator, placement

detach = operator("detach", """The same memory without history: a result that needs no gradient.""")

alias = operator("alias", """A view of the whole tensor.""")


@alias.derivative
def _(grad):
    yield lambda: grad


select = operator("select", """The slice at `index` of dimension `dim`, which disappears.

    >>> cresset.tensor([[1, 2], [3, 4]]).select(0, 1)
    tensor([3, 4])
    """)  # fmt: skip


@select.derivative
def _(grad, input_info, dim, index):
    yield lambda: embed(grad, input_info, lambda whole: whole.select(dim, index))


slice = operator("slice", """The elements start, start + step, ... before `end` of dimension `dim`.""")


@slice.derivative
def _(grad, input_info, dim, start, end, step):
    # A slice of everything, x[:], is the input as it is, but for its strides.
    yield (
        lambda: (
            grad.contiguous()
            if grad.shape == input_info.shape
            else embed(grad, input_info, lambda whole: cresset.slice(whole, dim, start, end, step))
        )
    )


narrow = operator("narrow", """The `length` elements from `start` on of dimension `dim`.

    >>> cresset.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """)  # fmt: skip


@narrow.derivative
def _(grad, input_info, dim, start, length):
    yield lambda: embed(grad, input_info, lambda whole: whole.narrow(dim, start, length))


def embed(grad, info, part):
    """A tensor of zeros like `info` whose `part` is grad."""
    whole = grad.new_zeros(info.shape)
    part(whole).copy_(grad)  # when recorded, the history of `whole` follows its view
    return whole


unsqueeze = operator("unsqueeze", """A dimension of size one inserted at `dim`.

    >>> cresset.ones(3).unsqueeze(0).shape
    torch.Size([1, 3])
    """)  # fmt: skip


@unsqueeze.derivative
def _(grad, dim):
    yield lambda: grad.squeeze(dim)


squeeze = operator("squeeze", """Without the dimensions of size one (all, or those in `dim`).

    >>> cresset.ones(1, 3, 1).squeeze().shape
    torch.Size([3])
    """)  # fmt: skip
squeeze_dim, squeeze_dims = operator("squeeze.dim"), operator("squeeze.dims")


@squeeze.derivative
@squeeze_dim.derivative
@squeeze_dims.derivative
def _(grad, input_info):
    yield lambda: grad.reshape(input_info.shape)


transpose = operator("transpose", """Dimensions `dim0` and `dim1` exchanged.

    >>> cresset.ones(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """)  # fmt: skip


@transpose.derivative
def _(grad, dim0, dim1):
    yield lambda: grad.transpose(dim0, dim1)


t = operator("t", """The transpose of a matrix; a vector stays as it is.

    >>> cresset.tensor([[1, 2], [3, 4]]).t()
    tensor([[1, 3],
            [2, 4]])
    """)  # fmt: skip


@t.derivative
def _(grad):
    yield lambda: grad.t()


permute = operator("permute", """The dimensions in another order.

    >>> cresset.ones(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """)  # fmt: skip


@permute.derivative
def _(grad, dims):
    def back():
        order = [0] * len(dims)
        for new, old in enumerate(dims):
            order[old % len(dims)] = new
        return grad.permute(order)

    yield back


expand = operator("expand", """Dimensions of size one repeated to `size`, without copying; -1 keeps a size.

    >>> cresset.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """)  # fmt: skip


@expand.derivative
def _(grad):
    yield lambda: grad  # the engine sums what was repeated


view = operator("view", """The same elements in another shape, without copying; one size may be -1. With a dtype: the
    same bytes as another type.

    >>> cresset.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """)  # fmt: skip
reshape = operator("reshape", """The same elements in another shape; a view where that is possible.

    >>> cresset.arange(6).reshape(3, 2)
    tensor([[0, 1],
            [2, 3],
            [4, 5]])
    """)  # fmt: skip


def _reshape_back(grad, input_info):
    yield lambda: grad.reshape(input_info.shape)


view = operator("view.")
view.operator.derivative(_reshape_back, overload="")
reshape.derivative(_reshape_back)


as_strided = operator(
    "as_strided", """A view with the given sizes, strides and offset into the storage, all in elements."""
)


@as_strided.derivative
def _(grad, input_info, size, stride, storage_offset):
    yield lambda: _as_strided_back(grad, input_info, size, stride, storage_offset)


def _as_strided_back(grad, input, size, stride, storage_offset):
    """Scatter into a flat picture of the storage, adding where elements overlap, then read the input's elements back
    from it.
    """
    if 0 in size:
        return grad.new_zeros(input.shape)  # a constant, as in PyTorch
    offset = input.storage_offset() if storage_offset is None else storage_offset
    first = min(offset, input.storage_offset())

    def reach(sizes, strides, start):
        return start + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1 if 0 not in sizes else start

    flat = grad.new_zeros(
        max(reach(size, stride, offset), reach(input.shape, input.stride(), input.storage_offset())) - first
    )
    places = cresset.arange(flat.numel())
    written = places.as_strided(size, stride, offset - first).reshape(-1)
    flat = flat.index_add(0, written, grad.reshape(-1))
    seen = places.as_strided(input.shape, input.stride(), input.storage_offset() - first)
    if any(
        s == 0 and n > 1 for n, s in zip(input.shape, input.stride(), strict=True)
    ):  # elements of the input that share memory share the gradient
        count = cresset.zeros_like(flat).index_add(
            0, seen.reshape(-1), cresset.ones_like(seen.reshape(-1), dtype=flat.dtype)
        )
        flat = flat / count.clamp(min=1)
    return flat[seen]


diagonal = operator("diagonal", """The diagonal of dimensions `dim1` and `dim2`, as a last dimension.

    >>> cresset.arange(9).view(3, 3).diagonal()
    tensor([0, 4, 8])
    """)  # fmt: skip


@diagonal.derivative
def _(grad, input_info, offset, dim1, dim2):
    yield lambda: embed(grad, input_info, lambda whole: whole.diagonal(offset, dim1, dim2))


unfold = operator("unfold", """Windows of `size` elements, `step` apart, of dimension `dimension`; a window is a last
    dimension.

    >>> cresset.arange(5).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3],
            [3, 4]])
    """)  # fmt: skip


@unfold.derivative
def _(grad, input_info, dimension, size, step):
    def back():
        shape = input_info.shape
        if not shape:
            return grad.sum(-1).reshape(()) if grad.ndim else grad
        dim = dimension % len(shape)
        if grad.device.type != "cpu" and size % step == 0 and size // step <= 16:
            return _windows_back(grad, shape, dim, size // step, step)
        windows = cresset.arange(shape[dim], device=grad.device).unfold(0, size, step).reshape(-1)
        flat = grad.movedim(-1, dim + 1).flatten(dim, dim + 1)
        return cresset.zeros(shape, dtype=grad.dtype, device=grad.device).index_add(dim, windows, flat)

    yield back


def _windows_back(grad, shape, dim, overlap, step):
    """The sum of windows of `overlap` times `step` elements: their pieces of `step`, each added to the piece of the
    result it covers, the earliest window's first.
    """
    pieces = grad.movedim(-1, dim + 1).unflatten(dim + 1, (overlap, step))
    count = pieces.size(dim)
    result = cresset.zeros(shape, dtype=grad.dtype, device=grad.device)
    covered = result.narrow(dim, 0, (count + overlap - 1) * step).unflatten(dim, (-1, step))
    for k in reversed(range(overlap)):
        covered.narrow(dim, k, count).add_(pieces.select(dim + 1, k))
    return result


unbind = operator("unbind", """A tuple of the slices along `dim`.

    >>> cresset.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """)  # fmt: skip


@unbind.derivative
def _(grads, dim):
    yield lambda: cresset.stack(grads, dim)


split = operator("split", """Pieces of `split_size` elements (or of the listed sizes) along `dim`.

    >>> cresset.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """)  # fmt: skip
split_with_sizes = operator("split_with_sizes", """Pieces of the listed sizes along `dim`.""")
chunk = operator("chunk", """At most `chunks` pieces of equal size (the last may be smaller) along `dim`.

    >>> cresset.arange(5).chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """)  # fmt: skip


unsafe_split = operator("unsafe_split", """`split` into pieces that may be changed in place: to autograd they are no
    views.

    >>> cresset.unsafe_split(cresset.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """)  # fmt: skip
unsafe_split_with_sizes = operator("unsafe_split_with_sizes",
    """`split_with_sizes` into pieces that may be changed in place: to autograd they are no views.

    >>> cresset.unsafe_split_with_sizes(cresset.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """)  # fmt: skip
unsafe_chunk = operator("unsafe_chunk", """`chunk` into pieces that may be changed in place: to autograd they are no
    views.

    >>> cresset.unsafe_chunk(cresset.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """)  # fmt: skip


@split.derivative
@operator("split.sizes").derivative
@split_with_sizes.derivative
@chunk.derivative
@unsafe_split.derivative
@unsafe_split_with_sizes.derivative
@unsafe_chunk.derivative
def _(grads, dim):
    yield lambda: cresset.cat(grads, dim)


@function(name="split")
def _split(tensor, split_size_or_sections, dim=0) -> Any:
    """Pieces of one size, or of the listed sizes, along `dim`.

    >>> cresset.split(cresset.arange(5), [2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return tensor.split(split_size_or_sections, dim)


view_as_real = operator("view_as_real", """A complex tensor as a real one with a last dimension of size two.""")


@view_as_real.derivative
def _(grad):
    yield lambda: cresset.view_as_complex(grad.contiguous())


view_as_complex = operator(
    "view_as_complex",
    """A real tensor with a last dimension of size two as a complex one.""",
    autocast={"cpu": "float32"},
)


@view_as_complex.derivative
def _(grad):
    yield lambda: cresset.view_as_real(grad)


real = operator("real", """The real part; of a real tensor, itself.""")
imag = operator("imag", """The imaginary part of a complex tensor.""")


@real.derivative
def _(grad, input_info):
    yield lambda: grad.to(input_info.dtype)


@imag.derivative
def _(grad, input_info):
    yield lambda: grad.to(input_info.dtype) * 1j


@function(method="only")
def resize(input, *sizes):
    """The elements in another shape that has as many; the old name of `reshape`."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if cresset.Size(sizes).numel() != input.numel():
        raise RuntimeError(
            f"resize: a tensor of shape {tuple(input.shape)} has {input.numel()} elements, shape {sizes} has another "
            "number; "
            "only resize_, in place, may change it"
        )
    return input.reshape(sizes)


@function(method="only")
def resize_as(input, tensor):
    """The elements in the shape of `tensor`; the old name of `reshape_as`."""
    return resize(input, *tensor.shape)


functions_in_place("as_strided_", "detach_", "resize_as_")


# --- inside vmap ---

batch("alias", "detach", "real", "imag", "view_as_real")("leading")


@view_as_complex.batch
def _(call):
    if not call.rank():
        raise RuntimeError("view_as_complex: Input tensor must have one or more dimensions")
    return call.run(call.front())


@batch("view.dtype")
def _(call):
    value = call.front()
    return value.view(call.args[1]) if call.rank() else value.unsqueeze(1).view(call.args[1]).squeeze(1)


@unfold.batch
def _(call):
    if not call.rank():
        return call.front().unsqueeze(1).unfold(call.dim(call.args[1]), *call.args[2:]).select(1, 0)
    return call.along()


@batch(
    "split",
    "split.sizes",
    "split_with_sizes",
    "chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsafe_chunk",
    "narrow",
    "select",
    "slice",
    "unbind",
)
def _(call):
    if not call.rank():
        error = RuntimeError if call.name == "unbind" else IndexError
        raise error(f"{call.name}: Dimension specified for a tensor that has no dimensions")
    return call.along()


@diagonal.batch
def _(call):
    offset, *dims = call.args[1:]
    return call.front().diagonal(offset, *(call.dim(dim) for dim in dims))


@transpose.batch
def _(call):
    if not call.rank():
        for dim in call.args[1:]:
            call.dim(dim)
        return call.run(call.front(), name="alias")
    return call.front().transpose(*(call.dim(dim) for dim in call.args[1:]))


@t.batch
def _(call):
    if call.rank() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {call.rank()}D")
    return call.front().transpose(1, 2) if call.rank() == 2 else call.run(call.front(), name="alias")


@permute.batch
def _(call):
    rank, dims = call.rank(), call.args[1]
    if len(dims) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions: {rank} and {len(dims)}"
        )
    return call.front().permute(0, *(call.dim(dim) for dim in dims))


@unsqueeze.batch
def _(call):
    return call.front().unsqueeze(call.dim(call.args[1], call.rank() + 1))


@batch("squeeze", "squeeze.dim", "squeeze.dims")
def _(call):
    rank, shape = call.rank(), call.given[0].shape
    if call.name == "squeeze":
        dims = range(rank)
    else:
        dims = call.args[1] if call.name == "squeeze.dims" else [call.args[1]]
        dims = [call.dim(dim) - 1 for dim in dims]
    return call.front().squeeze(tuple(dim + 1 for dim in dims if rank and shape[dim] == 1))


@batch("reshape", "view")
def _(call):
    shape, numel = list(call.args[1]), call.given[0].numel()
    if -1 in shape:
        known = math.prod(size for size in shape if size != -1)
        if known and numel % known == 0 and shape.count(-1) == 1:
            shape[shape.index(-1)] = numel // known
    if math.prod(shape) != numel or any(size < 0 for size in shape):
        raise RuntimeError(f"shape '{list(call.args[1])}' is invalid for input of size {numel}")
    return call.run(call.front(), (call.size, *shape))


@expand.batch
def _(call):
    size = call.args[1]
    if len(size) < call.rank():
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({call.rank()})"
        )
    return call.padded(0, len(size)).expand(call.size, *size)


@as_strided.batch
def _(call):
    value, (size, stride, offset) = call.front(), call.args[1:]
    offset = value.storage_offset() if offset is None else offset
    return value.as_strided((call.size, *size), (value.stride(0), *stride), offset)


# --- as ONNX ---


@onnx("view", "reshape")
def _(g, input, size=None, shape=None, dtype=None):
    wanted = shape if size is None else size
    if wanted is None:
        raise g.unsupported("the elements of a tensor cannot be read as another dtype")
    return g.reshape(input, _whole(g, wanted), input.shape)


def _whole(g, sizes):
    """The sizes, in which a -1 is the known size of the result if that makes the shape plainer."""
    sizes = list(sizes)
    if -1 in [s for s in sizes if isinstance(s, int)] and any(g.is_size(s) for s in sizes):
        return g.result.shape
    return sizes


@onnx("expand")
def _(g, input, size):
    sizes = list(size)
    first = len(sizes) - len(input.shape)
    for k, s in enumerate(sizes):
        if isinstance(s, int) and s == -1 or k >= first and s == input.shape[k - first]:
            sizes[k] = 1  # Expand broadcasts
    return g.op("Expand", input, g.sizes(sizes))


@onnx("transpose")
def _(g, input, dim0, dim1):
    order = list(range(len(input.shape)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.transpose(input, order)


@onnx("t")
def _(g, input):
    return g.transpose(input, range(len(input.shape))[::-1])


@onnx("permute")
def _(g, input, dims):
    return g.transpose(input, [d % len(input.shape) for d in dims])


@onnx("unsqueeze")
def _(g, input, dim):
    return g.unsqueeze(input, [dim % (len(input.shape) + 1)])


@onnx("squeeze")
def _(g, input, dim=None):
    rank = len(input.shape)
    dims = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    return g.squeeze(input, [d % rank for d in dims if rank and input.shape[d] == 1])


@onnx("select")
def _(g, input, dim, index):
    return g.op("Gather", input, g.number(index, cresset.int64), axis=dim % len(input.shape))


@onnx("slice")
def _(g, input, dim, start, end, step):
    return g.slice(
        input, dim % len(input.shape), 0 if start is None else start, 2**63 - 1 if end is None else end, step
    )


@onnx("narrow")
def _(g, input, dim, start, length):
    return g.slice(input, dim % len(input.shape), start, start + length)


@onnx("unbind")
def _(g, input, dim):
    axis = dim % len(input.shape)
    return [g.op("Gather", input, g.number(k, cresset.int64), axis=axis) for k in range(len(g.call.results))]


@onnx("chunk", "split", "split_with_sizes")
def _(g, input, dim):
    axis = dim % len(input.shape)
    sizes = [value.shape[axis] for value in g.call.results]
    if len(sizes) == 1:
        return [input]
    return g.op("Split", input, g.sizes(sizes), axis=axis, outputs=len(sizes))


@onnx("diagonal")
def _(g, input, offset, dim1, dim2):
    shape = input.shape
    dim1, dim2 = dim1 % len(shape), dim2 % len(shape)
    if any(g.is_size(shape[d]) for d in (dim1, dim2)):
        raise g.unsupported("the diagonal of dimensions that are free")
    order = [d for d in range(len(shape)) if d not in (dim1, dim2)] + [dim1, dim2]
    rows, columns = shape[dim1], shape[dim2]
    places = [r * columns + r + offset for r in range(rows) if 0 <= r + offset < columns]
    flat = g.reshape(g.transpose(input, order), [*(shape[d] for d in order[:-2]), rows * columns])
    return g.op("Gather", flat, g.ints(places), axis=len(shape) - 2)


@onnx("unfold")
def _(g, input, dimension, size, step):
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    axis = dimension % len(input.shape)
    if g.is_size(input.shape[axis]):
        raise g.unsupported("windows along a dimension that is free")
    count = (input.shape[axis] - size) // step + 1
    places = cresset.arange(count).mul(step).unsqueeze(1) + cresset.arange(size)
    windows = g.op("Gather", input, g.initializer(places), axis=axis)  # (..., count, size, ...)
    rank = len(input.shape) + 1
    return g.transpose(windows, [d for d in range(rank) if d != axis + 1] + [axis + 1])


@onnx("as_strided")
def _(g, input, size, stride, storage_offset):
    if any(g.is_size(s) for s in (*size, *stride, *input.shape)):
        raise g.unsupported("strides of a tensor whose dimensions are free")
    places = cresset.arange(math.prod(input.shape)).as_strided(tuple(size), tuple(stride), storage_offset or 0)
    return g.op("Gather", g.reshape(input, [-1]), g.initializer(places.contiguous()), axis=0)


# How they lie on several processes: words of distributed/tensor/words.py.
placement("detach", "alias", "real", "imag")("same")
placement("transpose", "t")("transposed")
placement("permute")("permuted")
placement("unsqueeze")("unsqueezed")
placement("squeeze")("squeezed")
placement("expand")("expanded")
placement("view", "reshape")("reshaped")
placement(
    "slice", "narrow", "split", "split_with_sizes", "chunk", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"
)("narrowed")
placement("select", "unbind")("selected_at")
placement("unfold")("windowed")
placement("diagonal")("diagonals")
placement("view_as_real", "view_as_complex")("paired")
