"""Operators on corresponding elements, copies and conversions."""

import cresset
from cresset import _native
from cresset.ops import formulas

from ..batching import decomposed, pointwise, rule

# Those that are formulas, with their in-place forms.
for name in _native.operators():
    if formulas.definition(name.removesuffix("_")) is not None:
        rule(name)(pointwise)

rule("complex", "native_dropout_backward", "_standard_gamma_grad", "masked_fill", "masked_fill_")(pointwise)

CONVERSIONS = (
    "bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "cpu", "double", "float", "half", "int", "long", "short", "to", "to.dtype", "clone", "contiguous",
    "zeros_like", "ones_like", "full_like", "empty_like",
)  # fmt: skip


@rule(*CONVERSIONS)
def convert(call):
    """The batch converted whole. A layout of channels is that of a sample and cannot be asked of a batch, which has more dimensions; and the
    samples of a copy lie one after another, as those of a fresh tensor do."""
    args = [call.front(), *call.args[1:]]
    place = call.place("memory_format")
    if place is not None and (args[place] in (cresset.channels_last, cresset.channels_last_3d) or call.dims[0]):
        args[place] = cresset.contiguous_format
    return call.run(*args)


@rule("alias", "detach", "to_dtype", "real", "imag", "view_as_real", "view_as_complex", "zero_", "tril", "triu", "tril_", "triu_")
def as_they_are(call):
    """Operators that treat leading dimensions as they should."""
    return call.run(call.front(), *call.args[1:])


@rule("to.other")
def to_other(call):
    other = call.given[1]
    return call.front().to(other.dtype)


@rule("view.dtype")
def view_dtype(call):
    value = call.front()
    return value.view(call.args[1]) if call.rank() else value.unsqueeze(1).view(call.args[1]).squeeze(1)


@rule("fill")
def fill(call):
    return cresset.full_like(call.full(), 0).copy_(call.padded(1, call.rank()) if call.dims[1] is not None else call.args[1])


@rule("fill_", "copy_")
def copy(call):
    """The target has the batch first; the source is aligned with a sample of it."""
    target, source = call.front(), call.args[1]
    if call.dims[1] is not None:
        source = call.padded(1, call.rank())
        if source.dim() > target.dim():
            raise RuntimeError(f"{call.name}: a sample of shape {tuple(call.given[1].shape)} does not broadcast to {tuple(call.given[0].shape)}")
    target.copy_(source)


@rule("masked_fill.Tensor", "masked_fill_.Tensor")
def masked_fill(call):
    """With a value for each sample, it is a choice between two tensors."""
    if call.dims[2] is None:
        return pointwise(call)
    input, mask, value = call.given
    chosen = decomposed(lambda *_: cresset.where(mask, value.to(input.dtype), input))(call)
    if not call.name.startswith("masked_fill_"):
        return chosen
    call.front().copy_(chosen)
    return None


@rule("new_zeros", "new_ones", "new_empty", "new_full")
def new_sized(call):
    """A fresh tensor for each sample, so that it can be written to."""
    return call.run(call.args[0], (call.size, *call.args[1]), *call.args[2:])


@rule("new_empty_strided")
def new_strided(call):
    size, stride, *rest = call.args[1:]
    length = 1 + sum((s - 1) * t for s, t in zip(size, stride, strict=True)) if all(size) else 0
    return call.run(call.args[0], (call.size, *size), (length, *stride), *rest)


@rule("nonzero", "nonzero_numpy", "masked_select", "_unique2", "_unique_dim", "_unique_consecutive", "_unique_consecutive_dim")
def dynamic(call):
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {call.name}, whose result may have another "
        "shape for every sample"
    )


@rule("set_", "resize_")
def refused(call):
    raise RuntimeError(f"vmap: {call.name} is not possible inside vmap, where a tensor has no memory of its own")

