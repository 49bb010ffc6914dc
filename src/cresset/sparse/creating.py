"""New sparse tensors like others: zeros_like, empty_like, new_zeros; and the factories' layout= argument."""

import cresset

from .compressed import BLOCKED, LAYOUTS, CompressedTensor, compressed, empty_compressed
from .coo import CooTensor, empty_coo, sparse_coo_tensor
from .tensor import LAYOUT_NAMES, SparseTensor, check_format, rule, rules


@rule("empty", "zeros")
def zeros(
    *sizes,
    size=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """A tensor without values in any layout but the strided one."""
    check_format("zeros", memory_format)
    sizes = sizes if size is None else (size,)
    size = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    new = empty_of(size, layout, dtype, device)
    new = new.pin_memory() if pin_memory else new
    return new.requires_grad_() if requires_grad else new


@rule("empty_like")
def empty_like(input, *, layout=None, **kwargs):
    """A tensor of the same shape and layout; of a compressed one the places are kept, and its layout."""
    if isinstance(input, CompressedTensor):
        return _empty_at(input, layout=layout, **kwargs)
    return zeros_like(input, layout=layout, **kwargs)


@rule("zeros_like")
def zeros_like(
    input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None
):
    """A tensor of the same shape and layout without values (of another layout, if asked for)."""
    dtype, device = dtype or input.dtype, device or input.device
    layout = input.layout if layout is None else layout
    if layout == cresset.strided:
        given = {} if memory_format is None else {"memory_format": memory_format}
        plain = cresset.empty(input.shape, dtype=dtype, device="meta")
        return cresset.zeros_like(plain, device=device, pin_memory=pin_memory, requires_grad=requires_grad, **given)
    if memory_format is not None:
        raise RuntimeError(
            f"zeros_like: memory format option is only supported by strided tensors, got {memory_format} for a sparse "
            "one"
        )
    dense = input.dense_dim() if isinstance(input, SparseTensor) else 0
    if layout == cresset.sparse_coo:
        new = empty_coo(input.shape, input.dim() - dense, dtype, device)
    elif layout == input.layout:
        new = empty_compressed(input.shape, layout, dtype, device, input.block, input._parts[0].dtype, dense)
    else:
        block = getattr(input, "block", (1, 1))
        new = empty_compressed(input.shape, check_blocked(layout, block), dtype, device, block, dense_dim=dense)
    new = new.pin_memory() if pin_memory else new
    return new.requires_grad_() if requires_grad else new


def check_blocked(layout, block):
    """The layout; one of blocks needs the size of a block."""
    if layout in BLOCKED and block == (1, 1):
        raise RuntimeError(
            f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{LAYOUT_NAMES[str(layout)]}; convert a tensor by to_sparse(blocksize=...)"
        )
    return layout


def _same_places(name):
    """A rule that makes new values at the places of a compressed tensor."""
    function = getattr(cresset, name)

    def apply(input, *args, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **kwargs):
        if layout not in (None, input.layout):
            raise RuntimeError(
                f"{name} with different sparse layout is not supported (self is {LAYOUT_NAMES[str(input.layout)]} but "
                f"you requested {LAYOUT_NAMES[str(layout)]})"
            )
        check_format(name, kwargs.pop("memory_format", None))
        if not isinstance(input, CompressedTensor):
            raise NotImplementedError(
                f"{name}: not implemented for {input.kind} tensors: it would make a dense result; call to_dense() first"
            )
        new = input._with(function(input._recorded.detach(), *args, dtype=dtype, device=device, **kwargs), True)
        new = new.pin_memory() if pin_memory else new
        return new.requires_grad_() if requires_grad else new

    return apply


_empty_at = _same_places("empty_like")
for _name in ("ones_like", "full_like", "randn_like", "rand_like", "randint_like"):
    rules[_name] = _same_places(_name)


def empty_of(size, layout, dtype=None, device=None, requires_grad=False):
    """A tensor of zeros in any layout."""
    dtype = dtype or cresset.get_default_dtype()
    if layout == cresset.strided:
        return cresset.zeros(size, dtype=dtype, device=device, requires_grad=requires_grad)
    if layout == cresset.sparse_coo:
        new = empty_coo(tuple(size), len(size), dtype, device)
    elif layout in LAYOUTS:
        new = empty_compressed(tuple(size), check_blocked(layout, (1, 1)), dtype, device)
    else:
        raise NotImplementedError(f"empty: not implemented for layout={layout}")
    return new.requires_grad_() if requires_grad else new


@rule("new_zeros", "new_empty")
def new_zeros(input, *size, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False):
    """A tensor of the same layout, dtype and device, of another size, without values."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    new = empty_of(size, layout or input.layout, dtype or input.dtype, device or input.device)
    new = new.pin_memory() if pin_memory else new
    return new.requires_grad_() if requires_grad else new


def legacy_new(tensor, *args, size=None, device=None):
    """What Tensor.new of a coordinate tensor is: one from sizes, or from indices, values and perhaps a size."""
    if not isinstance(tensor, CooTensor):
        raise RuntimeError(f"new: not implemented for {tensor.kind} tensors, got layout {tensor.layout}; use new_zeros")
    if device is not None and cresset.device(device).type != tensor.device.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {tensor.device.type} but device type: "
            f"{cresset.device(device).type} was passed"
        )
    args = args if size is None else (*args, cresset.Size(size))
    if len(args) in (2, 3) and all(isinstance(a, cresset.Tensor) for a in args[:2]):
        return sparse_coo_tensor(*args, dtype=tensor.dtype, device=device or tensor.device)
    if len(args) == 1 and isinstance(args[0], cresset.Size):
        args = tuple(args[0])
    elif len(args) == 1 and isinstance(args[0], (list, tuple)):
        raise TypeError(
            "new: of a sparse tensor a sequence must be a torch.Size; use torch.sparse_coo_tensor() or to_sparse()"
        )
    if not all(isinstance(a, int) for a in args):
        raise TypeError(
            "new() received an invalid combination of arguments: expected sizes, or indices, values and a size, got "
            f"({', '.join(type(a).__name__ for a in args)})"
        )
    return empty_of(args or (0,), cresset.sparse_coo, tensor.dtype, device or tensor.device)


@rule("resize_as_", "resize_as_sparse_")
def resize_as_(input, other, memory_format=None):
    """Give the tensor the size of `other`, in place."""
    check_format("resize_as_", memory_format)
    if isinstance(input, CooTensor):
        return input.sparse_resize_(tuple(other.shape), other.sparse_dim(), other.dense_dim())
    for word, tensor in (("self", input), ("src", other)):
        if not isinstance(tensor, CompressedTensor):
            raise RuntimeError(
                f"resize_as_sparse_compressed_: {word}  expected sparse compressed tensor layout but got "
                f"{LAYOUT_NAMES[str(tensor.layout)]}"
            )
    if input.layout != other.layout:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got "
            f"{LAYOUT_NAMES[str(input.layout)]} and {LAYOUT_NAMES[str(other.layout)]}"
        )
    if input.shape == other.shape and input._recorded.shape == other._recorded.shape:
        return input
    first, second = (part.to(input._parts[0].dtype, copy=True) for part in other._parts[:2])
    values = input._recorded.new_zeros(other._recorded.shape)
    input._become(compressed(first, second, values, other.shape, input.layout))
    return input


@rule("resize_")
def resize_(input, *size, memory_format=None):
    """Change the size in place and keep the values that are inside."""
    check_format("resize_", memory_format)
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if isinstance(input, CompressedTensor):
        return resize_rows(input, size)
    return input.sparse_resize_(size, input.sparse_dim(), input.dense_dim())


def resize_rows(input, size):
    """A CSR matrix (or a batch of them) with more columns and another number of rows, in place; those that stay keep
    their values.
    """
    if len(size) < 2 or len(size) != input.dim() or tuple(size[:-2]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"torch.resize_: Only batched sparse CSR matrices are supported, and their batch stays, but got size "
            f"{list(size)} for {list(input.shape)}"
        )
    if input.layout != cresset.sparse_csr:
        raise RuntimeError(f"torch.resize_: expected layout SparseCsr, got {LAYOUT_NAMES[str(input.layout)]}")
    if size[-1] < input.shape[-1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original "
            f"number of columns is {input.shape[-1]} while the requested new number of columns is {size[-1]}."
        )
    first, second, values = input._parts
    rows = size[-2]
    kept = first[..., : rows + 1]
    counts = kept[..., -1].unique()
    if counts.numel() > 1:
        raise RuntimeError("torch.resize_: the matrices of a batch would have different numbers of values")
    count = int(counts[0]) if counts.numel() else 0
    more = kept[..., -1:].expand(*kept.shape[:-1], max(rows + 1 - kept.shape[-1], 0))
    at = first.dim() - 1
    parts = cresset.cat([kept, more], -1), second[..., :count], values.narrow(at, 0, count)
    input._become(compressed(*parts, size, input.layout))
    return input


def compressed_with_dims(nnz, dense_dim, size, blocksize, index_dtype, dtype=None, layout=None, device=None):
    """A compressed tensor with room for `nnz` values, all of them zero in the first places of the first rows."""
    blocks = tuple(blocksize) if layout in BLOCKED else (1, 1)
    dtype = dtype or cresset.get_default_dtype()
    new = empty_compressed(tuple(size), layout, dtype, device, blocks, index_dtype, dense_dim)
    first, second, values = new._parts
    at = second.dim() - 1
    rest = size[at : at + 2]
    counts = [n // b for n, b in zip(rest, blocks, strict=True)]
    across = counts[1] if new.by_row else counts[0]
    places = cresset.arange(nnz, dtype=index_dtype, device=device)
    begins = (cresset.arange(first.shape[-1], dtype=index_dtype, device=device) * across).clamp(max=nnz)
    if int(begins[-1]) != nnz:
        raise RuntimeError(f"_sparse_compressed_tensor_with_dims: {nnz} values do not fit size {list(size)}")
    shape = (*values.shape[:at], nnz, *values.shape[at + 1 :])
    columns = places % max(across, 1)
    return compressed(
        begins.expand(first.shape).contiguous(),
        columns.expand(*second.shape[:-1], nnz).contiguous(),
        values.new_zeros(shape),
        size,
        layout,
    )
