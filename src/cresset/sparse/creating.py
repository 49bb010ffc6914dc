"""New sparse tensors like others: zeros_like, empty_like, new_zeros; and the factories' layout= argument."""

import cresset

from .compressed import CompressedTensor, empty_compressed
from .coo import CooTensor, empty_coo
from .tensor import check_format, rule


@rule("zeros_like", "empty_like")
def zeros_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None
):
    """A tensor of the same shape and layout without values (of another layout, if asked for)."""
    check_format("zeros_like", memory_format)
    dtype, device = dtype or input.dtype, device or input.device
    if layout is not None and layout != input.layout:
        return empty_of(input.shape, layout, dtype, device, requires_grad)
    if isinstance(input, CooTensor):
        new = empty_coo(input.shape, input.sparse_dim(), dtype, device)
    else:
        new = empty_compressed(input.shape, input.layout, dtype, device, input.block, input._parts[0].dtype)
    new = new.pin_memory() if pin_memory else new
    return new.requires_grad_() if requires_grad else new


def empty_of(size, layout, dtype=None, device=None, requires_grad=False):
    """A tensor of zeros in any layout."""
    dtype = dtype or cresset.get_default_dtype()
    if layout == cresset.strided:
        return cresset.zeros(size, dtype=dtype, device=device, requires_grad=requires_grad)
    if layout == cresset.sparse_coo:
        new = empty_coo(tuple(size), len(size), dtype, device)
    else:
        new = empty_compressed(tuple(size), layout, dtype, device)
    return new.requires_grad_() if requires_grad else new


@rule("new_zeros", "new_empty")
def new_zeros(input, *size, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False):
    """A tensor of the same layout, dtype and device, of another size, without values."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    new = empty_of(size, layout or input.layout, dtype or input.dtype, device or input.device)
    new = new.pin_memory() if pin_memory else new
    return new.requires_grad_() if requires_grad else new


@rule("resize_as_", "resize_as_sparse_")
def resize_as_(input, other, memory_format=None):
    """Give the tensor the size of `other`, in place."""
    check_format("resize_as_", memory_format)
    if isinstance(input, CooTensor):
        return input.sparse_resize_(tuple(other.shape), other.sparse_dim(), other.dense_dim())
    raise RuntimeError("resize_as_: only sparse_coo tensors can be resized to a sparse one")


@rule("resize_")
def resize_(input, *size, memory_format=None):
    """Change the size in place and keep the values that are inside."""
    check_format("resize_", memory_format)
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if isinstance(input, CompressedTensor):
        raise NotImplementedError("resize_: not implemented for compressed layouts; call to_sparse_coo() first")
    return input.sparse_resize_(size, input.sparse_dim(), input.dense_dim())
