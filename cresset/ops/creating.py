"""New tensors made by other functions: complex numbers from parts, index pairs of triangles, powers, ranges."""

import math

import cresset

from .dimensions import check_tensors, sizes
from .registry import function


def _check_parts(who, **parts):
    check_tensors(who, **parts)
    first, second = parts.values()
    for part in (first, second):
        if part.dtype not in (cresset.float16, cresset.float32, cresset.float64):
            raise RuntimeError(
                f"{who}: Expected both inputs to be Half, Float or Double tensors but got "
                f"{first.dtype} and {second.dtype}"
            )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"{who}: Expected object of scalar type {first.dtype} but got scalar type {second.dtype} "
            "for second argument"
        )


@function(out=True)
def complex(real, imag):
    """Complex numbers from their real and imaginary parts.

    >>> cresset.complex(cresset.tensor([1.0]), cresset.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_parts("complex", real=real, imag=imag)
    return cresset.view_as_complex(cresset.stack(cresset.broadcast_tensors(real, imag), -1))


@function(out=True)
def polar(abs, angle):
    """Complex numbers from their absolute values and angles.

    >>> cresset.polar(cresset.tensor([2.0]), cresset.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts("polar", abs=abs, angle=angle)
    return complex(abs * angle.cos(), abs * angle.sin())


@function
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A 0-d tensor; of the default dtype, whatever the number is, if none is given.

    >>> cresset.scalar_tensor(3)
    tensor(3.)
    """
    dtype = cresset.get_default_dtype() if dtype is None else dtype
    if isinstance(s, cresset.Tensor):
        s = s.item()
    return cresset.full((), s, dtype=dtype, device=device, requires_grad=requires_grad)


@function
def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """The row and column indices of the elements on and below a diagonal of a `row` × `col` matrix.

    >>> cresset.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    below = _column_minus_row("tril_indices", row, col, dtype, device) <= offset
    return _indices(below, dtype)


@function
def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """The row and column indices of the elements on and above a diagonal of a `row` × `col` matrix.

    >>> cresset.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    above = _column_minus_row("triu_indices", row, col, dtype, device) >= offset
    return _indices(above, dtype)


def _column_minus_row(who, row, col, dtype, device):
    for name, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{who}: {name} must be non-negative, got {size}")
    if dtype not in (None, cresset.int32, cresset.int64):
        raise NotImplementedError(f"{who}: not implemented for {dtype}")
    return cresset.arange(col, device=device) - cresset.arange(row, device=device).unsqueeze(1)


def _indices(mask, dtype):
    """The indices of True, one column for each."""
    indices = mask.nonzero().t().contiguous()
    return indices if dtype is None else indices.to(dtype)


@function
def vander(x, N=None, increasing=False):
    """The matrix whose columns are powers of `x`, from N - 1 down to 0 (or up, if `increasing`).

    Args:
        N: the number of columns; the number of elements of `x` if None.

    >>> cresset.vander(cresset.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got {x.ndim} dimensions")
    columns = x.size(0) if N is None else N
    if columns < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {N}")
    x = x.to(cresset.promote_types(x.dtype, cresset.int64))
    powers = x.new_ones(x.size(0), min(columns, 1))
    if columns > 1:
        powers = cresset.cat([powers, x.unsqueeze(1).expand(x.size(0), columns - 1).cumprod(1)], 1)
    return powers if increasing else powers.flip((1,))


@function(name="range", out=True)
def range_including_end(start=0, end=None, step=1, *, dtype=None, layout=None, device=None, requires_grad=False):
    """The numbers from `start` to `end`, both included, `step` apart; `arange` is what Python programs expect.

    >>> cresset.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        raise TypeError("range() missing 1 required positional argument: 'end'")
    if step == 0:
        raise RuntimeError("range: step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"range: upper bound and lower bound inconsistent with step sign: {start}, {end} and {step}")
    dtype = cresset.get_default_dtype() if dtype is None else dtype
    count = math.floor((end - start) / step) + 1
    wide = cresset.float64 if dtype.is_floating_point else cresset.int64
    numbers = cresset.arange(count, dtype=wide, device=device) * step + start
    return numbers.to(dtype).requires_grad_(requires_grad)


@function
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor without definite elements, whose dimensions lie in memory in the order `physical_layout`.

    >>> cresset.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size, order = sizes(size), sizes(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for dim in order:
        if not 0 <= dim < len(size):
            raise RuntimeError(
                "empty_permuted: Dimension out of range (expected to be between 0 and "
                f"{len(size) - 1}, but got {dim} in {order})"
            )
        if order.count(dim) > 1:
            raise RuntimeError(f"empty_permuted: Duplicate dim not allowed, got {order}")
    memory = cresset.empty([size[dim] for dim in order], dtype=dtype, device=device, pin_memory=pin_memory)
    return memory.permute([order.index(dim) for dim in range(len(size))]).requires_grad_(requires_grad)
