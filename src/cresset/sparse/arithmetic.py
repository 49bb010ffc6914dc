"""Elementwise rules of sparse tensors. A function that leaves zero at zero is one of the values; others would make the
tensor dense.
"""

import math

import cresset
from cresset import _native

from ..tensors.interpreted import InterpretedTensor, stored
from .compressed import BLOCKED, CompressedTensor, batch_items, batched
from .converting import to_coo, to_layout
from .coo import CooTensor, coo, flattened
from .tensor import SparseTensor, check_format, rule, rules

_operators = _native.operators()

KEEP_ZERO = (
    "abs", "sgn", "sign", "sin", "sinh", "asin", "asinh", "tan", "tanh", "atan", "atanh", "sqrt", "square", "ceil",
    "floor", "round", "trunc",
    "frac", "expm1", "log1p", "erf", "erfinv", "deg2rad", "rad2deg", "relu", "isnan", "isinf", "isposinf", "isneginf",
    "signbit", "nan_to_num",
    "angle", "conj_physical", "leaky_relu", "silu", "gelu", "bitwise_not",
)  # fmt: skip
LINEAR = ("neg", "clone", "conj", "real", "imag", "contiguous", "detach", "resolve_conj", "resolve_neg", "alias")


def _on_values(name, coalesce):
    function = _operators[name]

    def apply(input, *args, **kwargs):
        if coalesce and isinstance(input, CooTensor):
            input = input.coalesce()
        return input._with(function(input._recorded, *args, **kwargs))

    return apply


def _in_place(name):
    function = rules[name]

    def apply(input, *args, **kwargs):
        if isinstance(input, CooTensor) and not input.is_coalesced():
            raise RuntimeError(f"{name}_ requires coalesced input")
        return stored(name + "_", input, function(input, *args, **kwargs))

    return apply


for _name in KEEP_ZERO:
    if _name in _operators and _name != "bitwise_not":
        rules[_name] = _on_values(_name, True)
        if _name + "_" in _operators:
            rules[_name + "_"] = _in_place(_name)
for _name in LINEAR:
    if _name in _operators:
        rules[_name] = _on_values(_name, False)


@rule("clone")
def clone(input, *, memory_format=None):
    """A copy of the indices and of the values."""
    check_format("clone", memory_format)
    return input._with(input._recorded.clone(), copy_indices=True)


# ---- conversion of dtype and device


@rule("to", "to_dtype")
def to(input, *args, dtype=None, device=None, **kwargs):
    """The values converted; the indices go to the device."""
    if not isinstance(input, SparseTensor):  # dense.to(sparse)
        return input.to(dtype=args[0].dtype, device=args[0].device)
    if args and isinstance(args[0], InterpretedTensor):
        dtype, device, args = args[0].dtype, args[0].device, args[1:]
    target = next((a for a in (device, *args) if isinstance(a, (str, cresset.device))), None)
    if target is not None and cresset.device(target).type == "meta" and not input.is_meta:  # no places, no values
        made = next((a for a in (dtype, *args) if isinstance(a, cresset.dtype)), input.dtype)
        return cresset.zeros_like(input, dtype=made, device="meta")
    values = input._recorded.to(
        *args, **{k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None}, **kwargs
    )
    if values is input._recorded:
        return input
    new = input._with(values)
    if values.device != input.device:
        new._parts = (*(part.to(values.device) for part in new._parts[:-1]), values)
    return new


def _cast(name):
    return lambda input, *args, **kwargs: to(input, getattr(cresset, name))


for _method, _dtype in (("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"),
    ("long", "int64"),
                        ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"),
                        ("cfloat", "complex64"), ("cdouble", "complex128")):  # fmt: skip
    rules[_method] = _cast(_dtype)


@rule("cpu")
def cpu(input, memory_format=None):
    """On the CPU."""
    check_format("cpu", memory_format)
    return to(input, device="cpu")


# ---- sums and products


def is_number(value):
    """A Python number, or a dense tensor without dimensions."""
    return not isinstance(value, SparseTensor) and (not isinstance(value, cresset.Tensor) or value.dim() == 0)


def same_size(name, a, b):
    if a.shape != b.shape:
        words = "expected sizes of 'self' and 'other' to match"
        if isinstance(a, CompressedTensor):
            words = "Expected input tensors to have the same shape"
        raise RuntimeError(f"{name}: {words}, but {list(a.shape)} != {list(b.shape)}")


def like(result, layout_of):
    """A coordinate result in the layout of an operand."""
    if isinstance(layout_of, CompressedTensor):
        return to_layout(result, layout_of.layout, layout_of.block if layout_of.layout in BLOCKED else None)
    return result


@rule("add")
def add(input, other, *, alpha=1):
    """Two sparse tensors give a sparse one, with all indices of both; a sparse and a dense one a dense one."""
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        sparse = input if isinstance(input, SparseTensor) else other
        if is_number(input) or is_number(other):
            raise RuntimeError(
                f"add: a number and a {sparse.kind} tensor would make a dense result; call to_dense() first"
            )
        if input.shape != other.shape:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while "
                f"other has size {list(other.shape)} (dense-sparse addition does not broadcast)"
            )
        if sparse is other:
            return add_to_dense(input, other, alpha)
        return cresset.add(input.to_dense(), other.to_dense(), alpha=alpha)
    same_size("add", input, other)
    dtype = cresset.result_type(input._recorded, other._recorded)
    same_places = isinstance(input, CompressedTensor) and all(
        a is b for a, b in zip(input._parts[:-1], other._parts[:-1], strict=False)
    )
    if same_places or (input._nnz() == other._nnz() == 0 and input._recorded.shape == other._recorded.shape):
        second = other._recorded if alpha == 1 else other._recorded * alpha
        return input._with((input._recorded + second).to(dtype))
    if isinstance(input, CompressedTensor) and isinstance(other, CompressedTensor) and input.batch_dim:
        pairs = zip(batch_items(input), batch_items(other), strict=True)
        return batched([add(a, b, alpha=alpha) for a, b in pairs], input.shape[: input.batch_dim])
    a, b = to_coo(input), to_coo(other)
    if a.sparse_dim() != b.sparse_dim() and 0 in (a._nnz(), b._nnz()):
        return like(a.clone().to(dtype) if b._nnz() == 0 else mul(b, alpha).clone().to(dtype), input)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {a.sparse_dim()} != "
            f"{b.sparse_dim()}"
        )
    second = b._recorded.to(dtype)
    second = second if alpha == 1 else second * alpha
    if a._indices() is b._indices():
        return like(coo(a._indices(), a._recorded.to(dtype) + second, a.shape, a.is_coalesced()), input)
    joined = coo(cresset.cat([a._indices(), b._indices()], 1), cresset.cat([a._recorded.to(dtype), second]), a.shape)
    if a.is_coalesced() and b.is_coalesced():
        joined = joined.coalesce()
    return like(joined, input)


def add_to_dense(dense, sparse, alpha):
    """The dense tensor with the values added at their places."""
    sparse = to_coo(sparse)
    dtype = cresset.result_type(dense, sparse._recorded)
    values = sparse._recorded.to(dtype)
    values = values if alpha == 1 else values * alpha
    dims = sparse.sparse_dim()
    if dims == 0 or dtype == cresset.bool:
        return cresset.add(dense, sparse.to_dense(), alpha=alpha)
    flat = dense.to(dtype).reshape(math.prod(dense.shape[:dims]), *dense.shape[dims:])
    return flat.index_add(0, flattened(sparse._indices(), dense.shape[:dims]), values).reshape(dense.shape)


def _check_holds(input, other):
    """Refuse to add what the dtype of `input` cannot hold: floats to integers."""
    dtype = cresset.result_type(*(t._recorded if isinstance(t, SparseTensor) else t for t in (input, other)))
    if not cresset.can_cast(dtype, input.dtype):
        raise RuntimeError(f"add_: Can't convert result type {dtype} to output {input.dtype} in add operation")


@rule("add_")
def add_(input, other, *, alpha=1):
    """Added in place. To a dense tensor only the rows that have values are written."""
    _check_holds(input, other)
    if isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError(
                f"add_: the sum of a {input.kind} tensor and a dense one is dense, and cannot be written to a sparse "
                "one; use add"
            )
        input._become(add(input, other, alpha=alpha).to(input.dtype))
        return input
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while other "
            f"has size {list(other.shape)} (dense-sparse addition does not broadcast)"
        )
    sparse = to_coo(other)
    values = sparse._recorded if alpha == 1 else sparse._recorded * alpha
    dims = sparse.sparse_dim()
    if dims == 1:
        return input.index_add_(0, sparse._indices()[0], values.to(input.dtype))
    if dims == 0:
        return input.add_(sparse.to_dense(), alpha=alpha)
    return input.index_put_(tuple(sparse._indices().unbind(0)), values.to(input.dtype), accumulate=True)


@rule("sub")
def sub(input, other, *, alpha=1):
    """input - alpha * other."""
    return add(input, other, alpha=-alpha)


@rule("sub_")
def sub_(input, other, *, alpha=1):
    """input -= alpha * other."""
    return add_(input, other, alpha=-alpha)


@rule("rsub")
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return add(other, input, alpha=-alpha)


@rule("mul", "multiply")
def mul(input, other):
    """Values times a number, times the dense elements at their places, or times the values that both have."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if is_number(other):
        return input._with(input._recorded * other)
    if not isinstance(other, SparseTensor):
        return times_dense(input, other)
    if input.dim() == 0 or other.dim() == 0:  # a number
        dtype = cresset.promote_types(input.dtype, other.dtype) if input.dim() == other.dim() else None
        if input.dim() == 0 and (other.dim() or other._nnz() > input._nnz()):
            input, other = other, input
        result = input._recorded * other.to_dense()
        return input._with(result if dtype is None else result.to(dtype))
    if input.shape != other.shape:
        size = cresset.broadcast_shapes(input.shape, other.shape)
        input, other = broadcast_to(input, size), broadcast_to(other, size)
    if (
        isinstance(input, CooTensor)
        and isinstance(other, CooTensor)
        and input._indices() is other._indices()
        and input.is_coalesced()
    ):
        return input._with(input._recorded * other._recorded)
    a, b = to_coo(input).coalesce(), to_coo(other).coalesce()
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same number of sparse dimensions, but {a.sparse_dim()} != "
            f"{b.sparse_dim()}"
        )
    sizes = a.shape[: a.sparse_dim()]
    left, right = flattened(a._indices(), sizes), flattened(b._indices(), sizes)
    place = cresset.searchsorted(right, left)
    found = (
        right[place.clamp(max=max(right.numel() - 1, 0))] == left
        if right.numel()
        else cresset.zeros_like(left, dtype=cresset.bool)
    )
    values = a._recorded[found] * b._recorded[place[found]]
    return like(coo(a._indices()[:, found], values, a.shape, True), input)


@rule("mul_", "multiply_")
def mul_(input, other):
    """Multiplied in place; of a dense tensor, the elements that the other one does not specify become zero."""
    if isinstance(input, SparseTensor):
        return stored("mul_", input, mul(input, other))
    return input.mul_(other.to_dense())


def broadcast_to(input, size):
    """The coordinate form of a sparse tensor with each of its values at all places that it stands for in `size`."""
    source = to_coo(input)
    if tuple(size) == tuple(source.shape):
        return source
    lead, dims = len(size) - source.dim(), source.sparse_dim()
    if lead < 0 or any(n not in (1, wanted) for n, wanted in zip(source.shape, size[lead:], strict=True)):
        raise RuntimeError(f"sparse_broadcast_to: shape {list(source.shape)} does not broadcast to {list(size)}")
    indices, values = source._parts
    rows = list(indices.unbind(0))
    values = values.expand(-1, *size[lead + dims :])
    for at in range(lead + dims):
        if at >= lead and source.shape[at - lead] == size[at]:
            continue
        count, n = values.shape[0], size[at]
        new = cresset.arange(n, device=values.device).repeat_interleave(count)
        rows = [row.repeat(n) for row in rows]
        rows[at : at + (at >= lead)] = [new]
        values = values.repeat(n, *[1] * (values.dim() - 1))
    indices = cresset.stack(rows) if rows else indices.new_zeros((0, values.shape[0]))
    return coo(indices, values, size)


def times_dense(sparse, dense):
    """The values times the dense elements at their places; both broadcast."""
    size = cresset.broadcast_shapes(sparse.shape, dense.shape)
    if size != sparse.shape:
        sparse = broadcast_to(sparse, size)
    full = dense.expand(sparse.shape)
    if isinstance(sparse, CompressedTensor):
        part = to_coo(sparse)
        return like(part._with(part._recorded * full[tuple(part._indices().unbind(0))]), sparse)
    if sparse.sparse_dim() == 0:
        return sparse._with(sparse._recorded * full)
    return sparse._with(sparse._recorded * full[tuple(sparse._indices().unbind(0))])


@rule("div", "divide", "true_divide")
def div(input, other, *, rounding_mode=None):
    """Values over a number."""
    if not is_number(other) or not isinstance(input, SparseTensor):
        shape = list(getattr(other, "shape", []))
        kind = "floor division" if rounding_mode == "floor" else "division"
        raise RuntimeError(
            f"Sparse {kind} requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )
    if rounding_mode is not None and isinstance(input, CooTensor):
        input = input.coalesce()
    return input._with(cresset.div(input._recorded, other, rounding_mode=rounding_mode))


@rule("floor_divide")
def floor_divide(input, other):
    """Values over a number, rounded down."""
    return div(input, other, rounding_mode="floor")


@rule("pow")
def power(input, exponent):
    """Values to a power above zero."""
    if not isinstance(input, SparseTensor) or not is_number(exponent):
        raise NotImplementedError("pow: a sparse exponent is not implemented; call to_dense() first")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    if isinstance(input, CooTensor):
        input = input.coalesce()
    return input._with(input._recorded**exponent)


@rule("copy_")
def copy_(input, other, non_blocking=False):
    """Take over values; of a dense tensor, from a dense or sparse one."""
    if not isinstance(input, SparseTensor):
        return input.copy_(other.to_dense(), non_blocking)
    if isinstance(input, CompressedTensor):
        check_copied(input, other)
    if not isinstance(other, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = sparse and src type = "
            "dense; use to_sparse()"
        )
    if input.layout != other.layout or input.shape != other.shape:
        raise RuntimeError(
            f"copy_: expected a {input.kind} tensor of shape {list(input.shape)}, got {other.kind} of shape "
            f"{list(other.shape)}"
        )
    input._become(other.clone().to(input.dtype, non_blocking=non_blocking))
    return input


def check_copied(input, other):
    """What a compressed tensor takes over has its layout, sizes and number of values."""
    if input.layout != other.layout:
        raise RuntimeError(
            "copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{input.layout} and src layout is {other.layout}"
        )
    if input._nnz() != other._nnz():
        raise RuntimeError(
            "copy_: only sparse compressed tensors with the same number of specified elements are supported. got "
            f"{input._nnz()} and {other._nnz()}"
        )
    for dim, (wanted, n) in enumerate(zip(input.shape, other.shape, strict=False)):
        if wanted != n:
            raise RuntimeError(
                f"copy_: expected shapes of self and src to match along dimension {dim} for {input.layout} layout but "
                f"got {wanted} and {n}"
            )
    if input.block != other.block:
        raise RuntimeError(
            "copy_: copy of sparse compressed tensors having different block sizes is not supported. self and src "
            f"block sizes are {input.block} and {other.block}"
        )


@rule("zero_")
def zero_(input):
    """Drop all values (of a compressed layout, set them to zero), in place."""
    from .creating import zeros_like

    input._become(
        zeros_like(input) if isinstance(input, CooTensor) else input._with(cresset.zeros_like(input._recorded))
    )
    return input


@rule("isclose", "eq", "ne", "lt", "le", "gt", "ge")
def compare(input, other, *args, **kwargs):
    """Refused: the result would be dense."""
    kind = (input if isinstance(input, SparseTensor) else other).kind
    raise NotImplementedError(f"comparisons: not implemented for {kind} tensors; call to_dense() first")
