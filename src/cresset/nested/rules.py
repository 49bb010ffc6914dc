"""What operators do with nested tensors. Those that leave the ragged dimension alone work on the packed values, others
on each component.
"""

import math

import cresset
from cresset import _native

from ..ops.pointwise import definitions
from .tensor import NestedTensor, component_shapes, from_items, items, nested, rules

_operators = _native.operators()


def rule(*names):
    """Enter a function into the table as the rule of the named operators."""

    def decorate(function):
        for name in names:
            rules[name] = function
        return function

    return decorate


# ---- elementwise


def same_layout(name, a, b):
    """Two nested tensors can meet element by element when their components have the same shapes."""
    if component_shapes(a) != component_shapes(b):
        shapes = tuple([tuple(shape) for shape in component_shapes(t)] for t in (a, b))
        raise RuntimeError(
            f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {shapes[0]} and {shapes[1]}"
        )


def packed_operand(whole, other):
    """What stands for a dense operand beside packed values, as a packed tensor that broadcasts; None if only components
    will do.
    """
    if not isinstance(other, cresset.Tensor) or other.dim() == 0:
        return other
    if whole.is_flat or whole._lengths is not None:
        return None
    rank = whole.dim()
    if other.dim() < rank:
        # It broadcasts over the batch. Along the ragged dimension it must have one element.
        at = other.dim() - (rank - whole._ragged)
        return other if at < 0 or other.shape[at] == 1 else None
    if other.dim() > rank:
        return None
    if other.shape[0] == 1 and other.shape[whole._ragged] == 1:
        return other[0]
    if other.shape[whole._ragged] == 1 and other.shape[0] == whole.size(0):
        each = cresset.arange(whole.size(0)).repeat_interleave(whole._offsets[1:] - whole._offsets[:-1])
        return other.squeeze(whole._ragged).index_select(0, each).movedim(0, whole._ragged - 1)
    return None


def elementwise(name):
    """The rule of an elementwise operator."""
    function = _operators[name]

    def apply(*args, **kwargs):
        whole = next(a for a in (*args, *kwargs.values()) if isinstance(a, NestedTensor))
        others = [a for a in args if isinstance(a, NestedTensor) and a is not whole]
        for other in others:
            same_layout(name, whole, other)
        aligned = all(
            a._ragged == whole._ragged and a.is_flat == whole.is_flat and a._lengths is None for a in (whole, *others)
        )
        if aligned:
            operands = [a._recorded if isinstance(a, NestedTensor) else packed_operand(whole, a) for a in args]
            if all(operand is not None or a is None for operand, a in zip(operands, args, strict=True)):
                return whole._with(function(*operands, **kwargs))
        count = whole.size(0)
        columns = [operand_items(a, count, whole.dim()) for a in args]
        return from_items(
            [function(*row, **kwargs) for row in zip(*columns, strict=True)], whole._layout, whole._ragged
        )

    return apply


def operand_items(value, count, rank):
    """An operand for each component."""
    if isinstance(value, NestedTensor):
        return items(value)
    if isinstance(value, cresset.Tensor) and value.dim() == rank:
        return value.expand(count, *value.shape[1:]).unbind(0)
    return [value] * count


for _name in definitions:
    if _name in _operators:
        rules[_name] = elementwise(_name)
for _name in ("add", "sub", "mul", "div", "pow", "where", "clone", "to", "to_dtype", "contiguous", "float", "double",
    "half", "bfloat16", "long", "int", "bool",
              "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "floor_divide",
              "remainder", "masked_fill", "cpu"):  # fmt: skip
    if _name in _operators:
        rules[_name] = elementwise(_name)


@rule("empty_like")
def empty_like(input, *, layout=None, memory_format=None, **kwargs):
    """A nested tensor with components of the same shapes, in order and without gaps."""
    if memory_format not in (None, cresset.contiguous_format, cresset.preserve_format):
        raise RuntimeError(f"empty_like: memory format {memory_format} is not supported for nested tensors")
    if layout not in (None, input._layout):
        raise RuntimeError(f"empty_like: expected layout {input._layout} for a nested tensor of it, got {layout}")
    return input._with(cresset.empty_like(input._packed, memory_format=cresset.contiguous_format, **kwargs))


@rule("clone")
def clone(input, *, memory_format=None):
    """A copy of the values."""
    if memory_format not in (None, cresset.contiguous_format, cresset.preserve_format):
        words = {cresset.channels_last: "ChannelsLast", cresset.channels_last_3d: "ChannelsLast3d"}
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            f"{words.get(memory_format, memory_format)}"
        )
    given = {} if memory_format is None else {"memory_format": memory_format}
    return input._with(input._packed.clone(**given))


@rule("to", "to_dtype")
def to(input, *args, copy=False, **kwargs):
    """The values converted; the tensor itself, where nothing is to be done."""
    args = [part for a in args for part in ((a.device, a.dtype) if isinstance(a, NestedTensor) else (a,))]
    if not isinstance(input, NestedTensor):
        return input.to(*args, copy=copy, **kwargs)
    packed = input._packed.to(*args, copy=copy, **kwargs)
    return input if packed is input._packed else input._with(packed)


def _dense_new(name):
    return lambda input, *args, **kwargs: getattr(input._packed, name)(*args, **kwargs)


for _name in ("new_zeros", "new_ones", "new_empty", "new_full"):
    rules[_name] = _dense_new(_name)


@rule("detach")
def detach(input):
    """Without history."""
    return input.detach()


@rule("_fused_dropout")
def fused_dropout(input, p, generator=None):
    """Dropout of the packed values, and their mask."""
    result, mask = _operators["_fused_dropout"](input._recorded, p, generator)
    return input._with(result), input._with(mask)


@rule("copy_")
def copy_(input, other, non_blocking=False):
    """Take over the elements of a nested tensor of the same shapes."""
    if not isinstance(other, NestedTensor) or component_shapes(input) != component_shapes(other):
        words = (
            "expected compatible input and src shapes, but got"
            if input._layout == cresset.jagged
            else "copy_ only supports tensors that are the same size for Nested implementations, got"
        )
        shapes = [component_shapes(t) if isinstance(t, NestedTensor) else tuple(t.shape) for t in (input, other)]
        raise RuntimeError(f"copy_: {words} {shapes[0]} and {shapes[1]}")
    input._become(input._with(other._recorded.to(input.device, input.dtype, non_blocking, True)))
    return input


# ---- dimensions


# What is said of an operator along the batch dimension of the strided layout.
ON_BATCH = {
    "softmax": "Cannot apply softmax across nested dimension 0",
    "transpose": "Nested tensor dimension 0 cannot be transposed",
    "squeeze": "For nested tensors, squeezing dimension 0 is not supported",
    "chunk": "Chunk for nested tensors is currently only supported for the last dimension.",
    "split_with_sizes": "split_with_sizes for nested tensors is currently only supported for the last dimension.",
}


def on_batch(input, name):
    """Why an operator is refused along the batch dimension."""
    if input._layout == cresset.strided and name in ON_BATCH:
        return f"{name}(): {ON_BATCH[name]}; unbind() it"
    if name in ("softmax", "log_softmax"):
        return f"{name}(): not supported when reducing across the batch dimension for NestedTensor; unbind() it"
    return f"{name}(): not supported for NestedTensor on dim=0; unbind() it"


def regular_dim(input, dim, name):
    """A dimension of the packed values for one of the whole that is neither the batch nor ragged; None for one that
    is."""
    rank = input.dim()
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    dim %= rank
    if dim == 0:
        raise RuntimeError(on_batch(input, name))
    return None if input.is_flat or input._lengths is not None or dim == input._ragged else dim - 1


def mapped(input, function):
    """`function` of each component."""
    return from_items([function(item) for item in items(input)], input._layout, input._ragged)


@rule("transpose", "swapaxes", "swapdims")
def transpose(input, dim0, dim1):
    """Two dimensions exchanged; not the batch."""
    rank = input.dim()
    regular_dim(input, dim0, "transpose")
    regular_dim(input, dim1, "transpose")
    a, b = dim0 % rank, dim1 % rank
    if input.is_flat:
        return mapped(input, lambda item: item.transpose(a - 1, b - 1))
    ragged = b if input._ragged == a else a if input._ragged == b else input._ragged
    return input._seen_as(
        nested(input._packed.transpose(a - 1, b - 1), input._layout, input._offsets, ragged, input._lengths)
    )


@rule("permute")
def permute(input, *dims):
    """The dimensions in another order; the batch stays first."""
    dims = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    if len(dims) != input.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({input.dim()}) does not match the length of the "
            f"desired ordering of dimensions ({len(dims)})."
        )
    order = [d % input.dim() for d in dims]
    if len(set(order)) != len(order):
        raise ValueError(f"permute(): duplicate dims are not allowed. Got {dims}")
    if order[0] != 0:
        raise ValueError(f"Permute is not supported on the batch dimension for jagged NT, got {dims}")
    inner = [d - 1 for d in order[1:]]
    if input.is_flat:
        return mapped(input, lambda item: item.permute(inner))
    return nested(
        input._packed.permute(inner), input._layout, input._offsets, order.index(input._ragged), input._lengths
    )


@rule("unsqueeze")
def unsqueeze(input, dim):
    """A dimension of size one inserted behind the batch."""
    rank = input.dim() + 1
    at = dim % rank
    if at == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    if input.is_flat:
        return mapped(input, lambda item: item.unsqueeze(at - 1))
    ragged = input._ragged + (at <= input._ragged)
    return nested(input._packed.unsqueeze(at - 1), input._layout, input._offsets, ragged, input._lengths)


@rule("squeeze")
def squeeze(input, dim=None):
    """A dimension of size one removed."""
    if dim is None:
        raise RuntimeError("For nested tensors, squeeze without the dim argument is not supported; say which dimension")
    at = regular_dim(input, dim, "squeeze")
    if at is None and input._layout == cresset.jagged and dim % input.dim() == input._ragged:
        raise RuntimeError("squeeze(): not supported for NestedTensor on ragged dim")
    if input._layout == cresset.strided and input.dim() == 2 and input.numel() == input.size(0):
        raise RuntimeError(
            "For nested tensors, squeezing a nested tensor of singleton tensors is not supported; values() has them"
        )
    if at is None:
        return mapped(input, lambda item: item.squeeze(dim % input.dim() - 1)) if input.is_flat else input
    if input._packed.shape[at] != 1:
        return input
    return nested(
        input._packed.squeeze(at),
        input._layout,
        input._offsets,
        input._ragged - (at + 1 < input._ragged),
        input._lengths,
    )


@rule("reshape", "view")
def reshape(input, *size):
    """The dimensions behind the ragged one in another shape; the batch and the ragged dimension (its size, or -1)
    stay."""
    size = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
    if input._layout == cresset.strided:
        check_strided_reshape(input, size)
    elif tuple(size) == tuple(input.size()):
        return input._seen_as(input._with(input._packed.view(input._packed.shape)))
    if input.is_flat or input._ragged != 1 or len(size) < 2 or size[0] not in (input.size(0), -1) or int(size[1]) != -1:
        raise RuntimeError(
            f"reshape: expected ({input.size(0)}, -1 or the ragged size, ...) for a nested tensor whose first "
            f"dimension is ragged, got {tuple(size)}"
        )
    inner = size[2:]
    packed = (
        input._packed.reshape(input._packed.shape[0], *inner)
        if inner
        else input._packed.reshape(input._packed.shape[0])
    )
    return input._seen_as(nested(packed, input._layout, input._offsets, 1, input._lengths))


def check_strided_reshape(input, size):
    """Refuse the shapes that no nested tensor of the strided layout can take."""
    if not input.size(0):
        raise RuntimeError("reshape: empty nested tensor cannot be reshaped")
    if not size:
        raise RuntimeError("reshape: shape '[]' is invalid for a nested tensor")
    if size[0] != input.size(0):
        raise RuntimeError(
            "reshape: For now nested reshape cannot change or infer the implicit batch dimension, got "
            f"{size[0]} for {input.size(0)}"
        )
    if sum(int(n) == -1 for n in size[1:]) > 1:
        raise RuntimeError(f"reshape: only one dimension can be inferred, got {size}")
    if -1 not in size:
        for shape in component_shapes(input):
            if math.prod(size[1:]) != math.prod(shape):
                raise RuntimeError(f"reshape: shape '{size[1:]}' is invalid for input of size {math.prod(shape)}")


def unflatten(input, dim, sizes):
    """One dimension split into several."""
    at = regular_dim(input, dim, "unflatten")
    if at is None:
        raise RuntimeError("unflatten: the ragged dimension cannot be split")
    extra = len(sizes) - 1
    return nested(
        input._packed.unflatten(at, sizes),
        input._layout,
        input._offsets,
        input._ragged + extra * (at + 1 < input._ragged),
        input._lengths,
    )


def flatten(input, start_dim=0, end_dim=-1):
    """Several dimensions behind the ragged one joined."""
    start, end = regular_dim(input, start_dim, "flatten"), regular_dim(input, end_dim, "flatten")
    if start is None or end is None or start < input._ragged - 1 <= end:
        raise RuntimeError("flatten: the ragged dimension cannot be joined with others")
    return nested(input._packed.flatten(start, end), input._layout, input._offsets, input._ragged, input._lengths)


def on_regular_dim(name):
    """The rule of an operator that takes a dimension, and leaves the others as they are."""
    function = _operators[name]

    def apply(input, *args, **kwargs):
        if name in ("softmax", "log_softmax") and not input.numel() and input.dim() == 1:
            return input  # of no components, whose dimensions are not known
        by_place = bool(args) and isinstance(args[0], int) and name not in ("split", "split_with_sizes", "chunk")
        if name in ("split", "split_with_sizes", "chunk"):
            dim = args[1] if len(args) > 1 else kwargs.pop("dim", 0)
            if name == "chunk" and input._layout == cresset.jagged and dim % input.dim() == 0:
                return chunk_batch(input, args[0])
            place = regular_dim(input, dim, name)
            if place is None and input._layout == cresset.strided and name in ON_BATCH:
                raise RuntimeError(f"{name}(): {ON_BATCH[name]}")
            if place is None:
                given = "split" if name == "split" and isinstance(args[0], int) else name
                given = "split_with_sizes" if given == "split" and not isinstance(args[0], int) else given
                raise RuntimeError(f"{given}(): not supported for NestedTensor on ragged dim")
            return tuple(input._with(part) for part in function(input._packed, args[0], place))
        dim = args[0] if by_place else kwargs.pop("dim")
        rest = args[1:] if by_place else args
        if name == "narrow" and input._layout == cresset.strided and dim in (0, -input.dim()):
            return narrow_batch(input, *rest, **kwargs)
        place = regular_dim(input, dim, name)
        if place is None and name in ("softmax", "log_softmax") and input._layout == cresset.jagged:
            check_ragged_softmax(input, dim, name)
        if place is None:
            inner = dim % input.dim() - 1
            return mapped(input, lambda item: function(item, inner, *rest, **kwargs))
        return input._with(function(input._packed, place, *rest, **kwargs))

    return apply


def check_ragged_softmax(input, dim, name):
    """Refuse softmax along a ragged dimension that is not the first behind the batch, or has holes."""
    if dim % input.dim() != input._ragged:
        return
    if input._lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for "
            "NestedTensor"
        )
    if input._ragged > 1:
        raise RuntimeError(
            f"{name}(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor"
        )


def chunk_batch(input, chunks):
    """The components in at most `chunks` groups, a nested tensor each."""
    every, count = list(items(input)), input.size(0)
    step = -(-count // chunks)
    return tuple(from_items(every[at : at + step], input._layout, input._ragged) for at in range(0, count, step))


def narrow_batch(input, start, length):
    """The components from `start` on, `length` of them, on the same memory."""
    count = input.size(0)
    begin = start + count if start < 0 else start
    if not 0 <= begin <= begin + length <= count:
        raise RuntimeError(
            f"narrow(): start ({start}) + length ({length}) exceeds dimension size ({count}) of a nested tensor"
        )
    end = begin + length
    if input._shapes is not None:
        sizes = [math.prod(shape) for shape in input._shapes]
        packed = input._packed.narrow(0, sum(sizes[:begin]), sum(sizes[begin:end]))
        return input._seen_as(nested(packed, input._layout, shapes=input._shapes[begin:end]))
    offsets, places = input._offsets[begin : end + 1], input._offsets.tolist()
    packed = input._packed.narrow(input._ragged - 1, places[begin], places[end] - places[begin])
    return input._seen_as(nested(packed, input._layout, offsets - places[begin], input._ragged))


for _name in ("softmax", "log_softmax", "narrow", "cumsum", "split", "split_with_sizes", "chunk", "sort", "flip"):
    if _name in _operators:
        rules[_name] = on_regular_dim(_name)


@rule("unbind")
def unbind(input, dim=0):
    """The components."""
    return input.unbind(dim)


@rule("select")
def select(input, dim, index):
    """One place of a dimension, without the dimension."""
    if dim % input.dim() == 0:
        return input[index]
    place = regular_dim(input, dim, "select")
    if place is None:
        inner = dim % input.dim() - 1
        picked = [item.select(inner, index) for item in items(input)]
        return (
            cresset.stack(picked)
            if len({tuple(item.shape) for item in picked}) == 1
            else from_items(picked, input._layout)
        )
    return nested(
        input._packed.select(place, index),
        input._layout,
        input._offsets,
        input._ragged - (place + 1 < input._ragged),
        input._lengths,
    )


@rule("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    """Components joined pairwise along a dimension; along the batch, more components."""
    tensors = list(tensors)
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    whole = tensors[0]
    if dim % whole.dim() == 0 and whole._layout == cresset.jagged:
        raise RuntimeError("cat(): not supported for NestedTensor on dim=0")
    if dim % whole.dim() == 0:
        return from_items(
            [item for t in tensors for item in (items(t) if isinstance(t, NestedTensor) else t.unbind(0))],
            whole._layout,
            whole._ragged,
        )
    inner = dim % whole.dim() - 1
    others = [[(*s[:inner], *s[inner + 1 :]) for s in component_shapes(t)] for t in tensors]
    if any(shapes != others[0] for shapes in others):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
        )
    rows = zip(*(items(t) for t in tensors), strict=True)
    return from_items([cresset.cat(list(row), inner) for row in rows], whole._layout, whole._ragged)


@rule("stack")
def stack(tensors, dim=0):
    """Refused: a batch of batches is no nested tensor."""
    raise RuntimeError(f"stack(): not supported for NestedTensor on dim={dim}; cat() the components of all")


# These two are functions made of others, which ask for sizes that a nested tensor does not have.
NestedTensor.flatten, NestedTensor.unflatten = flatten, unflatten
