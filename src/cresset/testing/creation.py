"""make_tensor: random tensors for tests, of any dtype, range and memory layout."""

import math
import warnings
from collections.abc import Sequence

import cresset

__all__ = ["make_tensor"]


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Uniform random numbers from `low` up to, but without, `high` (-9 to 9 for numbers, 10 for integers, all for
    bool).

    The same seed gives PyTorch's numbers.

    Args:
        noncontiguous: every second element of a tensor twice as large.
        exclude_zero: zeros become one, or the smallest positive number of a floating dtype.

    >>> cresset.testing.make_tensor((2, 3), dtype=cresset.int8, device="cpu", low=5, high=6)
    tensor([[5, 5, 5],
            [5, 5, 5]], dtype=torch.int8)
    """
    if dtype in (cresset.quint8, cresset.quint4x2, cresset.quint2x4, cresset.qint8, cresset.qint32):
        raise TypeError(f"make_tensor: The requested dtype '{dtype}' is not supported; quantize a floating one")
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        (shape,) = shape
    shape = tuple(shape)
    is_real = dtype.is_floating_point
    is_integral = not (is_real or dtype.is_complex)
    is_small = is_real and dtype.itemsize == 1  # the 8-bit ones, which have no arithmetic and no gradients
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: `noncontiguous` and `memory_format` are mutually exclusive, got noncontiguous=True and "
            f"memory_format={memory_format}"
        )
    if requires_grad and is_integral:
        raise ValueError(
            f"make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    noncontiguous = noncontiguous and math.prod(shape) > 1
    if noncontiguous:
        shape = (*shape[:-1], 2 * shape[-1])

    low, high = _range(dtype, low, high, is_integral)
    if is_integral:
        result = cresset.randint(low, high, shape, device=device, dtype=dtype)
    elif is_small:
        result = _uniform(cresset.empty(shape, device=device, dtype=cresset.float32), low, high).to(dtype)
    else:
        result = cresset.empty(shape, device=device, dtype=dtype)
        _uniform(cresset.view_as_real(result) if dtype.is_complex else result, low, high)

    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if is_integral else cresset.finfo(dtype).tiny
    return result.requires_grad_() if requires_grad and not is_small else result


def _range(dtype, low, high, is_integral):
    """The bounds with their defaults, checked and cut to what the dtype holds."""
    if dtype == cresset.bool:
        least, end, low_default, high_default = 0, 2, 0, 2
    elif is_integral:
        info = cresset.iinfo(dtype)
        least, end = info.min, info.max + (dtype != cresset.int64)  # randint takes no end of 2**63
        low_default, high_default = -9, 10
    else:
        info = cresset.finfo(dtype)
        least, end, low_default, high_default = info.min, info.max, -9, 9
    low = low_default if low is None else low
    high = high_default if high is None else high
    if low != low or high != high:
        raise ValueError(f"make_tensor: `low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and not is_integral and dtype.itemsize > 1:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated; use "
            "torch.full() for a constant",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(
            f"make_tensor: The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
            f"supports [{least}, {end})"
        )
    low, high = (min(max(bound, least), end) for bound in (low, high))
    return (math.ceil(low), math.ceil(high)) if is_integral else (low, high)


def _uniform(memory, low, high):
    """Fill with uniform numbers; where the width of the range is more than the dtype holds, half of it at first."""
    if high - low >= cresset.finfo(memory.dtype).max:
        return memory.uniform_(low / 2, high / 2).mul_(2)
    return memory.uniform_(low, high)
