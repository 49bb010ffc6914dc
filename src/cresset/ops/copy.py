"""Copies: conversions to another dtype or device, and copies in place of views.

`<view>_copy` is the view, copied. `<view>_scatter` is its opposite: a copy of the whole in which the view is replaced.
"""

from typing import Any

import cresset

from .._native import name_node
from .batches import copy_for
from .registry import batch, function, onnx, operator, placement

clone = operator("clone", """A copy with memory of its own; gradients flow through it.

    >>> cresset.tensor([1.0, 2.0]).clone()
    tensor([1., 2.])
    """)  # fmt: skip
contiguous = operator(
    "contiguous", """The tensor itself if its elements lie in row-major order, otherwise a copy that does."""
)

_lazy_clone = operator(
    "_lazy_clone", """A clone that shares its memory with the tensor until one of both is about to be written to."""
)


@clone.derivative
@_lazy_clone.derivative
@contiguous.derivative
def _(grad):
    yield lambda: grad


to = operator("to", """The tensor with another dtype or on another device; itself when nothing changes.

    >>> cresset.tensor([1.7]).to(cresset.int64)
    tensor([1])
    """)  # fmt: skip


@function
def _has_compatible_shallow_copy_type(input, other, /):
    """Whether a tensor can take over the data of another and stay the same object: a module that is converted asks.

    >>> cresset._has_compatible_shallow_copy_type(cresset.ones(2), cresset.ones(2, device="meta"))
    False
    """
    return input.is_meta == other.is_meta and input.layout == other.layout


NAMED = "float double half bfloat16 long int short char byte bool cfloat cdouble chalf cpu".split()


def _convert_back(grad, input_info):
    yield lambda: _fit_dtype(grad, input_info)


def _fit_dtype(grad, info):
    if grad.is_complex() and not info.dtype.is_complex:
        grad = cresset.real(grad)
    return grad.to(info.device, info.dtype)


for _name in ["to.", "to.dtype", "to_dtype.", *(name + "." for name in NAMED)]:
    operator(_name).derivative(_convert_back)
for _name in NAMED[:-1]:
    operator(_name, f"The tensor as {_name}; itself when it is that already.")
operator("cpu", "The tensor in host memory; itself when it is there already.")
operator("to_dtype", "The tensor as another dtype; itself when it is that already.")

copy_ = operator("copy_", """Fill the tensor with the elements of `src`, broadcast and converted.""")


@copy_.derivative
def _(grad, src_info):
    yield lambda: cresset.zeros_like(grad)
    yield lambda: _fit_dtype(grad, src_info)


@operator("copy_.number").derivative
def _(grad):
    yield lambda: cresset.zeros_like(grad)


operator("resize_", """Give the tensor another size, in place; new elements are undefined.""")
operator("set_", """Share the memory, sizes and strides of `source`.""")


@function(method=True)
def type_as(input, other):
    """The tensor with the dtype and device of `other`.

    >>> cresset.tensor([1]).type_as(cresset.tensor([0.5]))
    tensor([1.])
    """
    return input.to(other)


@function(method="only")
def module_load(input, other, assign=False):
    """What Module.load_state_dict puts in the place of this tensor: `other`, or this one with its values copied in.

    >>> cresset.zeros(2).module_load(cresset.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else input.copy_(other).detach()


# --- copies in place of views ---


def _replaced(who, node, whole, view, src):
    """`whole` after `src` was written into `view`, a view of it; the function is called `who`, and its node `node`."""
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(
            f"{who}: expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(view.shape)}"
        )
    view.copy_(src)
    return name_node(whole, node)


@function(method=True)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of `input` with `src` as its diagonal.

    >>> cresset.diagonal_scatter(cresset.zeros(2, 2), cresset.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    whole = copy_for(src, input)
    return _replaced("diagonal_scatter", "DiagonalScatterBackward0", whole, whole.diagonal(offset, dim1, dim2), src)


@function(method=True)
def select_scatter(input, src, dim, index):
    """A copy of `input` with `src` at position `index` of dimension `dim`.

    >>> cresset.select_scatter(cresset.zeros(2, 2), cresset.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    whole = copy_for(src, input)
    return _replaced("select_scatter", "SelectScatterBackward0", whole, whole.select(dim, index), src)


@function(method=True)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of `input` with `src` as its slice `[start:end:step]` along `dim`.

    >>> cresset.slice_scatter(cresset.zeros(3), cresset.ones(2), start=1)
    tensor([0., 1., 1.])
    """
    whole = copy_for(src, input)
    return _replaced(
        "slice_scatter", "SliceScatterBackward0", whole, _sliced("slice_scatter", whole, dim, start, end, step), src
    )


def _sliced(who, input, dim, start, end, step):
    """The slice `[start:end:step]` along `dim`, a view."""
    if step < 1:
        raise RuntimeError(f"{who}: slice step must be positive, got {step}")
    return input.movedim(dim, 0)[start:end:step].movedim(0, dim)


@function(method=True)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of `input` with `src` at the elements that `as_strided` would show.

    >>> cresset.as_strided_scatter(cresset.zeros(2, 2), cresset.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    offset = input.storage_offset()
    storage_offset = offset if storage_offset is None else storage_offset
    if input.is_contiguous():
        whole = copy_for(src, input)
        part = whole.as_strided(tuple(size), tuple(stride), storage_offset - offset)
        return _replaced("as_strided_scatter", "AsStridedScatterBackward0", whole, part, src)
    # The copy has the strides of the input, gaps and all, so that the same strides show the same elements.
    extent = offset + (1 + sum((n - 1) * s for n, s in zip(input.shape, input.stride())) if input.numel() else 0)
    memory = input.as_strided((extent,), (1,), 0).clone()
    whole = memory.as_strided(input.shape, input.stride(), offset)
    part = memory.as_strided(tuple(size), tuple(stride), storage_offset)
    return _replaced("as_strided_scatter", "AsStridedScatterBackward0", whole, part, src)


@function(method=True, out=True)
def narrow_copy(input, dim, start, length):
    """The part of `length` elements from `start` along `dim`, copied.

    >>> cresset.narrow_copy(cresset.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if input.is_sparse and not 0 <= dim < input.dim():
        raise RuntimeError(f"narrow_copy: Dimension {dim} out of range. Expecting 0 <= dim < {input.dim()}.")
    return name_node(_in_plain_order(input.narrow(dim, start, length)), "NarrowCopyBackward0")


def _in_plain_order(view):
    return view.clone(memory_format=cresset.contiguous_format) if view.layout is cresset.strided else view.clone()


def _copied(view, node=None):
    """The elements of a view in memory of their own, in the plain order. Autograd calls that as it calls the view, with
    `_copy` behind; `node`: where it calls the view something else.
    """
    copy = _in_plain_order(view)
    if copy.grad_fn is None:
        return copy
    return name_node(copy, (node or view.grad_fn.name()) + "_copy")


@function(out=True)
def alias_copy(input):
    """A copy; the copying form of a plain view.

    >>> cresset.alias_copy(cresset.tensor([1, 2]))
    tensor([1, 2])
    """
    return _copied(input, "AliasBackward0")


@function(out=True)
def detach_copy(input):
    """A copy outside of the graph.

    >>> cresset.detach_copy(cresset.ones(1, requires_grad=True))
    tensor([1.])
    """
    return _copied(input.detach())


@function(out=True)
def as_strided_copy(input, size, stride, storage_offset=None):
    """`as_strided`, copied.

    >>> cresset.as_strided_copy(cresset.arange(4), (2,), (3,))
    tensor([0, 3])
    """
    return _copied(input.as_strided(size, stride, storage_offset))


@function(out=True)
def diagonal_copy(input, offset=0, dim1=0, dim2=1):
    """`diagonal`, copied.

    >>> cresset.diagonal_copy(cresset.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return _copied(input.diagonal(offset, dim1, dim2))


@function(out=True)
def expand_copy(input, size, *, implicit=False):
    """`expand`, copied.

    >>> cresset.expand_copy(cresset.tensor([1]), (3,))
    tensor([1, 1, 1])
    """
    return _copied(input.expand(size))


@function(out=True)
def permute_copy(input, dims):
    """`permute`, copied.

    >>> cresset.permute_copy(cresset.tensor([[1, 2]]), (1, 0))
    tensor([[1],
            [2]])
    """
    return _copied(input.permute(dims))


@function(out=True)
def transpose_copy(input, dim0, dim1):
    """`transpose`, copied.

    >>> cresset.transpose_copy(cresset.tensor([[1, 2]]), 0, 1)
    tensor([[1],
            [2]])
    """
    return _copied(input.transpose(dim0, dim1))


@function(out=True)
def t_copy(input):
    """`t`, copied.

    >>> cresset.t_copy(cresset.tensor([[1, 2]]))
    tensor([[1],
            [2]])
    """
    return _copied(input.t())


@function(out=True)
def squeeze_copy(input, dim=None):
    """`squeeze`, copied.

    >>> cresset.squeeze_copy(cresset.tensor([[1, 2]]))
    tensor([1, 2])
    """
    return _copied(input.squeeze() if dim is None else input.squeeze(dim))


@function(out=True)
def unsqueeze_copy(input, dim):
    """`unsqueeze`, copied.

    >>> cresset.unsqueeze_copy(cresset.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """
    return _copied(input.unsqueeze(dim))


@function(out=True)
def select_copy(input, dim, index):
    """`select`, copied.

    >>> cresset.select_copy(cresset.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    return _copied(input.select(dim, index))


@function(out=True)
def slice_copy(input, dim=0, start=None, end=None, step=1):
    """The slice `[start:end:step]` along `dim`, copied.

    >>> cresset.slice_copy(cresset.arange(5), 0, 1, None, 2)
    tensor([1, 3])
    """
    return _copied(_sliced("slice_copy", input, dim, start, end, step))


@function(out=True)
def split_copy(input, split_size, dim=0) -> Any:
    """`split`, each piece copied.

    >>> cresset.split_copy(cresset.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return tuple(_copied(piece) for piece in input.split(split_size, dim))


@function(out=True)
def split_with_sizes_copy(input, split_sizes, dim=0) -> Any:
    """`split` into pieces of the given sizes, each copied.

    >>> cresset.split_with_sizes_copy(cresset.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return tuple(_copied(piece) for piece in input.split(list(split_sizes), dim))


@function(out=True)
def unbind_copy(input, dim=0) -> Any:
    """`unbind`, each piece copied.

    >>> cresset.unbind_copy(cresset.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    return tuple(_copied(piece) for piece in input.unbind(dim))


@function(out=True)
def unfold_copy(input, dimension, size, step):
    """`unfold`, copied.

    >>> cresset.unfold_copy(cresset.arange(3), 0, 2, 1)
    tensor([[0, 1],
            [1, 2]])
    """
    return _copied(input.unfold(dimension, size, step))


@function(out=True)
def view_copy(input, size=None, *, dtype=None):
    """`view` (as another shape, or another dtype), copied.

    >>> cresset.view_copy(cresset.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if isinstance(size, cresset.dtype):
        size, dtype = None, size
    return _copied(input.view(dtype) if size is None else input.reshape(size), "ViewBackward0")


@function(out=True)
def view_as_complex_copy(input):
    """`view_as_complex`, copied.

    >>> cresset.view_as_complex_copy(cresset.tensor([1.0, 2.0]))
    tensor(1.+2.j)
    """
    return _copied(cresset.view_as_complex(input))


@function(out=True)
def view_as_real_copy(input):
    """`view_as_real`, copied.

    >>> cresset.view_as_real_copy(cresset.tensor(1 + 2j))
    tensor([1., 2.])
    """
    return _copied(cresset.view_as_real(input))


# --- inside vmap ---

batch("to_dtype")("leading")
batch("set_", "resize_")("refused")


@batch("to", "to.dtype", "clone", "_lazy_clone", "contiguous", *NAMED)
def batch_of_converted(call):
    """The batch converted whole. A layout of channels is that of a sample and cannot be asked of a batch, which has
    more dimensions; and the samples of a copy lie one after another, as those of a fresh tensor do."""
    args = [call.front(), *call.args[1:]]
    place = call.place("memory_format")
    if place is not None and (args[place] in (cresset.channels_last, cresset.channels_last_3d) or call.dims[0]):
        args[place] = cresset.contiguous_format
    return call.run(*args)


@batch("to.other")
def _(call):
    other = call.given[1]
    return call.front().to(other.dtype)


@batch("copy_", "fill_")
def _(call):
    """The target has the batch first; the source is aligned with a sample of it."""
    target, source = call.front(), call.args[1]
    if call.dims[1] is not None:
        source = call.padded(1, call.rank())
        if source.dim() > target.dim():
            raise RuntimeError(
                f"{call.name}: a sample of shape {tuple(call.given[1].shape)} does not broadcast to "
                f"{tuple(call.given[0].shape)}"
            )
    target.copy_(source)


# --- as ONNX ---


@onnx("alias", "detach", "clone", "_lazy_clone", "contiguous", "cpu", "real")
def _(g, input):
    if input.dtype.is_complex:
        raise g.unsupported("complex numbers")
    return input


@onnx("to", "to_dtype", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool")
def _(g, input):
    return g.cast(input, input.dtype, g.result.dtype)


@onnx("copy_")
def _(g, input, src):
    return g.op("Expand", g.number(src, input.dtype), g.sizes(input.shape))


# How they lie on several processes: words of distributed/tensor/words.py.
placement("clone", "_lazy_clone", "contiguous", "to", "to_dtype", "cpu")("same")
placement("float", "double", "half", "bfloat16", "cfloat", "cdouble", "chalf")("same")
placement("long", "int", "short", "char", "byte", "bool")("same")
placement("copy_")("copied")
