"""torch._prims_common, as far as other packages name it."""

from .. import _native
from ..backends.determinism import alert_not_deterministic

__all__ = [
    "alert_not_deterministic", "compare_tensor_meta", "is_boolean_dtype", "is_complex_dtype", "is_float_dtype",
    "is_integer_dtype", "make_contiguous_strides_for", "suggest_memory_format",
]  # fmt: skip


def is_boolean_dtype(dtype):
    """Whether it is bool."""
    return dtype == _native.bool


def is_integer_dtype(dtype):
    """Whether it is one of whole numbers; bool is not."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


def is_float_dtype(dtype):
    """Whether it is one of real numbers.

    >>> cresset._prims_common.is_float_dtype(cresset.bfloat16), cresset._prims_common.is_float_dtype(cresset.int8)
    (True, False)
    """
    return dtype.is_floating_point


def is_complex_dtype(dtype):
    """Whether it is one of complex numbers."""
    return dtype.is_complex


def make_contiguous_strides_for(shape, row_major=True):
    """The strides of a tensor of this shape whose elements lie one after the other; without `row_major` those of the
    last two dimensions are turned round.

    >>> cresset._prims_common.make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(shape) > 1:
        strides[-2:] = [1, max(shape[-2], 1)]
    return tuple(strides)


def suggest_memory_format(x):
    """The memory format in which a tensor lies: channels last where it is, else contiguous."""
    last = {4: _native.channels_last, 5: _native.channels_last_3d}.get(x.dim())
    plain = x.is_contiguous() or last is None
    return last if not plain and x.is_contiguous(memory_format=last) else _native.contiguous_format


def compare_tensor_meta(a, b, check_sizes=True, check_strides=False, check_conj=True):
    """That two tensors are alike but for their numbers; an AssertionError says in what they are not.

    Strides count where there are several elements, and of dimensions that have several.
    """
    facts = [("dtype", a.dtype, b.dtype), ("device", a.device, b.device)]
    if check_sizes:
        facts.append(("shape", tuple(a.shape), tuple(b.shape)))
    if check_strides and a.numel():
        walked = [dim for dim, size in enumerate(a.shape) if size > 1]
        facts.append(("strides", [a.stride(dim) for dim in walked], [b.stride(dim) for dim in walked]))
        facts.append(("storage offset", a.storage_offset(), b.storage_offset()))
    if check_conj:
        facts.append(("conj", a.is_conj(), b.is_conj()))
    for what, one, other in facts:
        if one != other:
            raise AssertionError(f"compare_tensor_meta: the tensors differ in {what}: {one} and {other}")
