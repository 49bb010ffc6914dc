"""What operators do with nested tensors. Those that leave the ragged dimension alone work on the packed values, others
on each component.
"""

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
            f"cannot call binary pointwise function {name} with inputs of shapes {shapes[0]} and {shapes[1]}"
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
              "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "floor_divide",
              "remainder", "masked_fill", "cpu"):  # fmt: skip
    if _name in _operators:
        rules[_name] = elementwise(_name)


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
    same_layout("copy_", input, other)
    input._become(input._with(other._recorded.to(input.device, input.dtype, non_blocking, True)))
    return input


# ---- dimensions


def regular_dim(input, dim, name):
    """A dimension of the packed values for one of the whole that is neither the batch nor ragged; None for one that
    is."""
    rank = input.dim()
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    dim %= rank
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0; unbind() it")
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
    return nested(input._packed.transpose(a - 1, b - 1), input._layout, input._offsets, ragged, input._lengths)


@rule("permute")
def permute(input, *dims):
    """The dimensions in another order; the batch stays first."""
    dims = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    order = [d % input.dim() for d in dims]
    if sorted(order) != list(range(input.dim())) or order[0] != 0:
        raise RuntimeError(
            f"permute: expected an order of all {input.dim()} dimensions with the batch first, got {dims}"
        )
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
def squeeze(input, dim):
    """A dimension of size one removed."""
    at = regular_dim(input, dim, "squeeze")
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
    return nested(packed, input._layout, input._offsets, 1, input._lengths)


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
        by_place = bool(args) and isinstance(args[0], int) and name not in ("split", "split_with_sizes", "chunk")
        if name in ("split", "split_with_sizes", "chunk"):
            dim = args[1] if len(args) > 1 else kwargs.pop("dim", 0)
            place = regular_dim(input, dim, name)
            if place is None:
                raise RuntimeError(f"{name}(): not supported for NestedTensor on the ragged dimension")
            return tuple(input._with(part) for part in function(input._packed, args[0], place))
        dim = args[0] if by_place else kwargs.pop("dim")
        rest = args[1:] if by_place else args
        place = regular_dim(input, dim, name)
        if place is None:
            inner = dim % input.dim() - 1
            return mapped(input, lambda item: function(item, inner, *rest, **kwargs))
        return input._with(function(input._packed, place, *rest, **kwargs))

    return apply


for _name in ("softmax", "log_softmax", "narrow", "cumsum", "split", "split_with_sizes", "chunk", "sort", "flip"):
    if _name in _operators:
        rules[_name] = on_regular_dim(_name)


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
    whole = next(t for t in tensors if isinstance(t, NestedTensor))
    if dim % whole.dim() == 0:
        return from_items(
            [item for t in tensors for item in (items(t) if isinstance(t, NestedTensor) else t.unbind(0))],
            whole._layout,
            whole._ragged,
        )
    inner = dim % whole.dim() - 1
    rows = zip(*(items(t) if isinstance(t, NestedTensor) else t.unbind(0) for t in tensors), strict=True)
    return from_items([cresset.cat(list(row), inner) for row in rows], whole._layout, whole._ragged)


# ---- reductions


def reduction(name, function=None):
    """The rule of an operator that reduces: over all elements, over regular dimensions, or over the ragged one of each
    component.
    """
    function = function or _operators[name]

    def apply(input, dim=None, keepdim=False, **kwargs):
        if dim is None:
            return function(
                input._recorded if input._lengths is None else cresset.cat([item.reshape(-1) for item in items(input)]),
                **kwargs,
            )
        dims = sorted({d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim)})
        if dims == list(range(input.dim())):
            return apply(input, **kwargs)
        if 0 in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for "
                "nested tensors"
            )
        inner = [d - 1 for d in dims] if not isinstance(dim, int) else dims[0] - 1
        results = (
            [function(item, inner, keepdim, **kwargs) for item in items(input)]
            if input.is_flat or input._ragged in dims or input._lengths is not None
            else None
        )
        if results is None:
            ragged = input._ragged - (0 if keepdim else sum(d < input._ragged for d in dims))
            return nested(function(input._packed, inner, keepdim, **kwargs), input._layout, input._offsets, ragged)
        regular = len({tuple(r.shape) for r in results}) == 1
        return cresset.stack(results) if regular else from_items(results, input._layout)

    return apply


for _name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "any", "all", "logsumexp", "var", "std"):
    if _name in _operators:
        rules[_name] = reduction(_name)


def extreme(name):
    """`max` and `min`: of all elements, or values and where they lie along a dimension."""
    function, kind = _operators[name], getattr(cresset.return_types, name)
    of_all, values, indices = (
        reduction(name, part) for part in (function, lambda *args: function(*args)[0], lambda *args: function(*args)[1])
    )

    def apply(input, dim=None, keepdim=False):
        return of_all(input) if dim is None else kind((values(input, dim, keepdim), indices(input, dim, keepdim)))

    return apply


for _name in ("max", "min"):
    rules[_name] = extreme(_name)


def _filled(name):
    def apply(input, *args):
        getattr(input._recorded, name)(*args)
        return input

    return apply


for _name in ("fill_", "zero_"):
    rules[_name] = _filled(_name)


# ---- products and layers


@rule("linear")
def linear(input, weight, bias=None):
    """input @ weight.T + bias along the last dimension."""
    if input.is_flat or input._ragged == input.dim() - 1:
        return mapped(input, lambda item: cresset.linear(item, weight, bias))
    return input._with(cresset.linear(input._packed, weight, bias))


@rule("matmul", "bmm")
def matmul(input, other):
    """Each component times a dense matrix, or times the component of another nested tensor."""
    if isinstance(input, NestedTensor) and isinstance(other, NestedTensor):
        if input.size(0) != other.size(0):
            raise RuntimeError(f"matmul: expected batches of one size, got {input.size(0)} and {other.size(0)}")
        products = [a @ b for a, b in zip(items(input), items(other), strict=True)]
        layout = input._layout
        if layout == cresset.jagged and len({tuple(p.shape) for p in products}) == 1:
            return cresset.stack(products)
        try:
            return from_items(products, layout)
        except RuntimeError:
            shapes = [tuple(p.shape) for p in products]
            raise RuntimeError(
                "matmul(): not supported for nested tensors of layout torch.jagged whose products differ in two "
                f"dimensions: {shapes}; use torch.strided"
            ) from None
    if isinstance(input, NestedTensor):
        if other.dim() == 2 and not input.is_flat and input._ragged != input.dim() - 1:
            return input._with(input._packed @ other)
        right = operand_items(other, input.size(0), input.dim())
        return from_items([a @ b for a, b in zip(items(input), right, strict=True)], input._layout, input._ragged)
    left = operand_items(input, other.size(0), other.dim())
    return from_items([a @ b for a, b in zip(left, items(other), strict=True)], other._layout, other._ragged)


@rule("native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Layer norm over trailing dimensions that are regular."""
    if input.is_flat or input._ragged > input.dim() - 1 - len(normalized_shape):
        raise RuntimeError(
            f"layer_norm: the ragged dimension cannot be normalized over, normalized_shape is {tuple(normalized_shape)}"
        )
    result, mean, rstd = cresset.native_layer_norm(input._packed, normalized_shape, weight, bias, eps)
    return input._with(result), mean, rstd


@rule("_rms_norm")
def rms_norm(input, normalized_shape, *args):
    """RMS norm over trailing dimensions that are regular."""
    result, *statistics = _operators["_rms_norm"](input._packed, normalized_shape, *args)
    return input._with(result), *statistics


@rule("embedding")
def embedding(weight, indices, *args, **kwargs):
    """Rows of a table for ragged indices."""
    rows = cresset.embedding(weight, indices._recorded, *args, **kwargs)
    if indices.is_flat:
        return nested(
            rows.reshape(-1), indices._layout, shapes=[(*shape, weight.shape[1]) for shape in indices._shapes]
        )
    return nested(rows, indices._layout, indices._offsets, indices._ragged, indices._lengths)


@rule("_attention")
def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Attention of each sequence to itself alone."""
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: nested tensors take no attn_mask; each sequence sees itself alone"
        )
    rows = zip(items(query), items(key), items(value), strict=True)
    results = [cresset._attention(q, k, v, None, is_causal, scale, enable_gqa)[0] for q, k, v in rows]
    return from_items(results, query._layout, query._ragged), None


@rule("equal")
def equal(input, other):
    """Whether two nested tensors have the same components."""
    return component_shapes(input) == component_shapes(other) and bool((input._recorded == other._recorded).all())


# These two are functions made of others, which ask for sizes that a nested tensor does not have.
NestedTensor.flatten, NestedTensor.unflatten = flatten, unflatten
