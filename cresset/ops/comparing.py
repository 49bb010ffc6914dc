"""Comparing tensors: equality within bounds, membership, distinct elements, places in a sorted sequence."""

import math

import cresset

from .dimensions import check_tensors, wrap_dim
from .registry import function


@function(method=True)
def equal(input, other):
    """Do two tensors have the same shape and elements? Unlike `eq`, the answer is one bool.

    >>> cresset.equal(cresset.tensor([1, 2]), cresset.tensor([1, 2]))
    True
    """
    check_tensors("equal", input=input, other=other)
    return input.shape == other.shape and bool((input == other).all())


@function(method=True)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where |input - other| <= atol + rtol * |other|, elementwise. Infinities are close to themselves only.

    >>> cresset.isclose(cresset.tensor([1.0, 2.0]), cresset.tensor([1.0 + 1e-7, 3.0]))
    tensor([ True, False])
    """
    check_tensors("isclose", input=input, other=other)
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"isclose: {name} must be greater than or equal to zero, but got {bound}")
    close = input == other
    inexact = input.is_floating_point() or input.is_complex()
    if equal_nan and inexact:
        close = close | ((input != input) & (other != other))
    if rtol == 0 and atol == 0:
        return close
    if not inexact:
        dtype = cresset.get_default_dtype()
        input, other = input.to(dtype), other.to(dtype)
    distance = (input - other).abs()
    return close | (distance.isfinite() & (distance <= atol + (rtol * other).abs()))


@function(method=True)
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close in the sense of `isclose`?

    >>> cresset.allclose(cresset.tensor([1.0]), cresset.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@function(out=True)
def isin(elements=None, test_elements=None, *, assume_unique=False, invert=False, element=None, test_element=None):
    """Where an element is one of `test_elements`; one of the two may be a number.

    Args:
        assume_unique: a promise that neither holds an element twice; the result does not depend on it.
        invert: where it is not one of them.

    >>> cresset.isin(cresset.tensor([1, 2, 3]), cresset.tensor([2, 4]))
    tensor([False,  True, False])
    """
    elements = element if elements is None else elements
    tests = test_element if test_elements is None else test_elements
    for tensor in (elements, tests):
        if isinstance(tensor, cresset.Tensor) and (tensor.is_complex() or tensor.dtype == cresset.bool):
            raise RuntimeError(f"isin: Unsupported input type encountered for isin(): {tensor.dtype}")
    if not isinstance(tests, cresset.Tensor):
        if not isinstance(elements, cresset.Tensor):
            raise TypeError("isin: one of elements and test_elements must be a Tensor")
        return elements != tests if invert else elements == tests
    if not isinstance(elements, cresset.Tensor):
        found = (tests == elements).any()
    elif tests.numel() < 16:
        found = (elements.unsqueeze(-1) == tests.reshape(-1)).any(-1)
    else:
        dtype = cresset.promote_types(elements.dtype, tests.dtype)
        ordered = tests.detach().to(dtype).reshape(-1).sort().values
        elements = elements.detach().to(dtype).contiguous()
        place = searchsorted(ordered, elements).clamp_max(ordered.numel() - 1)
        found = ordered[place] == elements
    return ~found if invert else found


# --- distinct elements ---


@function(method=True)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements in increasing order, or the distinct slices along `dim`.

    Args:
        sorted: kept for compatibility; the result is always sorted.
        return_inverse: also give the place of each element of `input` in the result.
        return_counts: also give the number of times each occurs.

    >>> cresset.unique(cresset.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    _check_ordered("unique", input)
    input = input.detach()
    if dim is None:
        ordered, order = input.reshape(-1).sort(stable=True)
        first = _first_of_runs(ordered)
        return _distinct(ordered, first, order, input.shape, return_inverse, return_counts)
    dim = _checked_dim("unique", input, dim)
    slices = input.movedim(dim, 0)
    rank, order = _rank_rows(_as_rows(slices)).sort(stable=True)
    first = _first_of_runs(rank)
    results = _distinct(slices[order], first, order, order.shape, return_inverse, return_counts)
    return _move_back(results, dim)


@function(method=True)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or slices along `dim`) without those that repeat the one before.

    >>> cresset.unique_consecutive(cresset.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    _check_ordered("unique_consecutive", input)
    input = input.detach()
    if dim is None:
        elements = input.reshape(-1)
        return _distinct(elements, _first_of_runs(elements), None, input.shape, return_inverse, return_counts)
    dim = _checked_dim("unique_consecutive", input, dim)
    slices = input.movedim(dim, 0)
    first = _first_of_runs(_as_rows(slices))
    results = _distinct(slices, first, None, (slices.size(0),), return_inverse, return_counts)
    return _move_back(results, dim)


def _check_ordered(who, input):
    if input.is_complex():
        raise NotImplementedError(f"{who}: not implemented for {input.dtype}")


def _checked_dim(who, input, dim):
    if input.ndim == 0:
        raise IndexError(f"{who}: Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, input.ndim, who)
    if any(size == 0 for other, size in enumerate(input.shape) if other != dim):
        raise RuntimeError(
            f"{who}: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied; "
            f"the shape is {list(input.shape)}"
        )
    return dim


def _as_rows(slices):
    """Each slice along dimension 0 as one row."""
    return slices.reshape(slices.size(0), math.prod(slices.shape[1:]))


def _first_of_runs(ordered):
    """Where an element (of a vector) or a row (of a matrix) differs from the one before."""
    differs = ordered[1:] != ordered[:-1]
    if ordered.ndim > 1:
        differs = differs.any(1)
    return cresset.cat([differs.new_ones(min(1, ordered.size(0))), differs])


def _distinct(ordered, first, order, shape, return_inverse, return_counts):
    """The firsts of the runs in `ordered`, and what was asked for beside them.

    `order` is the permutation that has sorted the elements (None: they stand as they were given).
    """
    starts = first.nonzero().squeeze(1)
    results = [ordered[starts]]
    if return_inverse:
        run = first.cumsum(0) - 1
        inverse = run if order is None else cresset.empty_like(run).scatter_(0, order, run)
        results.append(inverse.reshape(shape))
    if return_counts:
        ends = cresset.cat([starts[1:], starts.new_full((min(1, starts.numel()),), first.numel())])
        results.append(ends - starts)
    return results[0] if len(results) == 1 else tuple(results)


def _move_back(results, dim):
    """The slices, which lie along dimension 0, back along `dim`."""
    if isinstance(results, tuple):
        return (results[0].movedim(0, dim), *results[1:])
    return results.movedim(0, dim)


def _rank_rows(rows):
    """The place of each row among the distinct rows in lexicographic order.

    Column by column, rows that agree so far are told apart, until all are different or all columns are seen.
    """
    rank = _rank(rows[:, 0])
    for column in range(1, rows.size(1)):
        if rank.numel() == 0 or int(rank.max()) == rank.numel() - 1:
            break
        value = _rank(rows[:, column])
        rank = _rank(rank * (value.max() + 1) + value)
    return rank


def _rank(elements):
    """The place of each element among the distinct elements."""
    return unique(elements, return_inverse=True)[1]


# --- places in a sorted sequence ---


@function(out=True)
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """Where elements would have to be inserted into a sequence to keep it sorted.

    Args:
        sorted_sequence: sorted along the last dimension; a vector, or with the leading dimensions of `input`.
        input: the elements, or a number.
        right: after equal elements, instead of before them. `side="right"` says the same.
        sorter: the indices that sort `sorted_sequence`, if it is not sorted itself.

    >>> cresset.searchsorted(cresset.tensor([1, 3, 5]), cresset.tensor([0, 3, 6]))
    tensor([0, 1, 3])
    """
    who = "searchsorted"
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{who}(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{who}(): side and right can't be set to opposites, got side of left while right was True")
    right = right or side == "right"
    sequence = sorted_sequence.detach()
    for dtype in (sequence.dtype, input.dtype if isinstance(input, cresset.Tensor) else sequence.dtype):
        if dtype.is_complex or dtype == cresset.bool:
            raise NotImplementedError(f"{who}: not implemented for {dtype}")
    if not isinstance(input, cresset.Tensor):
        input = (
            sequence.new_full((), input)
            if sequence.is_floating_point()
            else cresset.tensor(input, device=sequence.device)
        )
    input = input.detach()
    if input.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(
            f"{who}(): input value can be a scalar only when boundaries tensor dimension is 1, "
            f"but we got boundaries tensor dim({sequence.ndim})"
        )
    if sequence.ndim != 1 and sequence.shape[:-1] != input.shape[:-1]:
        raise RuntimeError(
            f"{who}(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
            f"input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input value "
            f"tensor {list(input.shape)}"
        )
    if sorter is not None:
        sequence = _sorted_by(sequence, sorter)
    place = _bisect(sequence, input, right)
    return place.to(cresset.int32) if out_int32 else place


def _sorted_by(sequence, sorter):
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "searchsorted(): boundary and sorter must have the same size, "
            f"but got boundary tensor {list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != cresset.int64:
        raise RuntimeError(f"searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
    if sorter.numel() and ((sorter < 0) | (sorter >= sequence.size(-1))).any():
        raise RuntimeError("searchsorted(): sorter index out of range")
    return sequence.gather(-1, sorter)


def _bisect(sequence, elements, right):
    """Bisection for all elements at once: in each step the half of the range in which an element belongs remains."""
    length = sequence.size(-1)
    low = cresset.zeros(elements.shape, dtype=cresset.int64, device=elements.device)
    if length == 0 or elements.numel() == 0:
        return low
    high = cresset.full_like(low, length)
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        at = middle.clamp_max(length - 1)
        value = sequence[at] if sequence.ndim == 1 else sequence.gather(-1, at)
        # Said with `not`, so that nan goes to the end.
        beyond = ~(value > elements if right else value >= elements) & (low < high)
        low = cresset.where(beyond, middle + 1, low)
        high = cresset.where(beyond, high, middle)
    return low


@function(out=True)
def bucketize(input, boundaries, *, out_int32=False, right=False):
    """The bucket of each element: bucket i ends at `boundaries[i]`, which belongs to it unless `right`.

    >>> cresset.bucketize(cresset.tensor([1, 3, 4]), cresset.tensor([1, 3, 5]))
    tensor([0, 1, 2])
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
