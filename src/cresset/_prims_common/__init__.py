"""torch._prims_common, as far as other packages name it."""

from .. import _native
from ..backends.determinism import alert_not_deterministic

__all__ = [
    "alert_not_deterministic", "compare_tensor_meta", "is_boolean_dtype", "is_complex_dtype", "is_float_dtype",
    "is_integer_dtype",
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
