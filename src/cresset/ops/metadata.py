"""What can be asked of a tensor besides its elements: its kind of number, its size, its device and its memory."""

import cresset
from cresset import _native

from .registry import function


@function(method=True)
def is_conj(input) -> bool:
    """False: conjugation is always carried out here, never pending."""
    return False


@function
def is_inference(input) -> bool:
    """Whether the tensor was made under inference_mode."""
    return input.is_inference()


@function
def get_device(input) -> int:
    """The number of the tensor's CUDA device, -1 on the CPU."""
    return input.get_device()


@function(method=True)
def is_neg(input) -> bool:
    """False: negation is always carried out here, never pending."""
    return False


@function(method=True)
def is_nonzero(input) -> bool:
    """Whether the only element is not zero."""
    if input.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with more than one value is ambiguous"
            if input.numel()
            else "Boolean value of Tensor with no values is ambiguous"
        )
    return bool(input)


@function(method=True)
def is_same_size(input, other) -> bool:
    """Whether both have the same shape."""
    if input.is_nested and other.is_nested:
        return input.is_same_size(other)
    if input.is_nested or other.is_nested:
        kind, one = ("Self", "Other") if other.is_nested else ("Other", "Self")
        raise RuntimeError(
            f"is_same_size: Expected both self and other to be nested tensors. {kind} is not nested. While {one} is "
            "nested."
        )
    return input.shape == other.shape


@function(asks_others=False)
def is_tensor(obj) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, cresset.Tensor)


@function
def numel(input) -> int:
    """The number of elements.

    >>> cresset.numel(cresset.zeros(2, 3))
    6
    """
    return input.numel()


@function
def is_floating_point(input) -> bool:
    """Whether the dtype is a floating-point type."""
    return input.is_floating_point()


@function
def is_complex(input) -> bool:
    """Whether the dtype is complex."""
    return input.is_complex()


@function
def is_signed(input) -> bool:
    """Whether the dtype has negative numbers.

    >>> cresset.is_signed(cresset.tensor([1], dtype=cresset.uint8))
    False
    """
    return input.dtype.is_signed


@function(method=True)
def is_distributed(input) -> bool:
    """Whether the tensor is spread over processes: never, here."""
    return False


@function(method="only")
def const_data_ptr(input) -> int:
    """The address of the first element, to read from: a lazy clone goes on sharing its memory."""
    input.untyped_storage()  # a tensor without memory says so
    return _native.address_for_readers(input)


@function(method="only")
def storage_type(input):
    """The class that stands for storages of the tensor's dtype: torch.FloatStorage and its relatives.

    >>> cresset.ones(1).storage_type()
    <class 'torch.FloatStorage'>
    """
    from ..storage import STORAGE_TYPES, TypedStorage  # upward: asked for by name alone

    return next((kind for kind in STORAGE_TYPES.values() if kind.dtype == input.dtype), TypedStorage)


@function(method="only")
def record_stream(input, stream):
    """Say that a stream uses the tensor, so that its memory is not given away before. On the CPU nothing runs
    behind."""
    if input.device.type == "cpu":
        raise NotImplementedError("record_stream: there are no streams on 'cpu'")
    cresset._native.cuda.record_stream(input, stream.cuda_stream)


def in_plain_order(tensor):
    """The tensor, or a contiguous copy of one that is not; nothing is recorded where nothing is copied."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def suggested_format(tensor):
    """The memory format that results made of `tensor` take: channels last where its strides are in that order, with
    gaps or without, and cannot be meant as the plain order.
    """
    rank = tensor.ndim
    if rank not in (4, 5) or tensor.stride(1) == 0 or tensor.numel() == 0:
        return _native.contiguous_format
    least = 0
    for dim in (1, *range(rank - 1, 1, -1), 0):
        size, stride = tensor.size(dim), tensor.stride(dim)
        # An order that both formats fit (one channel, one pixel) is no reason to say that channels lie last.
        if stride < least or (dim == 0 and least == tensor.stride(1)):
            return _native.contiguous_format
        least = stride * size
    return _native.channels_last if rank == 4 else _native.channels_last_3d
