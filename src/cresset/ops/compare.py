"""Comparing tensors: equality within bounds, membership, distinct elements, places in a sorted sequence."""

import numbers
from typing import Any

import cresset

from .dimensions import check_tensors
from .registry import batch, function, onnx, operator


@function(method=True)
def equal(input, other) -> bool:
    """Do two tensors have the same shape and elements? Unlike `eq`, the answer is one bool.

    >>> cresset.equal(cresset.tensor([1, 2]), cresset.tensor([1, 2]))
    True
    """
    check_tensors("equal", input=input, other=other)
    if input.shape != other.shape:
        return False
    first = ...
    if input.numel() > 16384:  # what differs mostly does at its beginning
        first = (0,) * (input.dim() - 1) + (slice(1024),)
    if not bool((input[first] == other[first]).all()):
        return False
    return input.numel() <= 16384 or bool((input == other).all())


@function(method=True)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where |input - other| <= atol + rtol * |other|, elementwise. Infinities are close to themselves only.

    >>> cresset.isclose(cresset.tensor([1.0, 2.0]), cresset.tensor([1.0 + 1e-7, 3.0]))
    tensor([ True, False])
    """
    check_tensors("isclose", input=input, other=other)
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}")
    for position, (name, bound) in enumerate((("rtol", rtol), ("atol", atol)), 3):
        if isinstance(bound, cresset.Tensor) and (bound.dim() or bound.requires_grad):
            raise TypeError(f"isclose(): argument '{name}' (position {position}) must be float, not Tensor")
        if not bound >= 0:
            raise RuntimeError(f"isclose: {name} must be greater than or equal to zero, but got {bound}")
    if not isinstance(equal_nan, bool):
        raise TypeError(f"isclose(): argument 'equal_nan' must be bool, not {type(equal_nan).__name__}")
    rtol, atol = float(rtol), float(atol)  # integers of any size
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
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
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
    for name, value, other in (("element", element, elements), ("test_element", test_element, test_elements)):
        if value is not None and (other is not None or isinstance(value, cresset.Tensor)):
            raise TypeError(
                f"isin(): {name} is a number instead of {name}s, got {type(value).__name__} and {type(other).__name__}"
            )
    elements = element if elements is None else elements
    tests = test_element if test_elements is None else test_elements
    for name, value in (("elements", elements), ("test_elements", tests)):
        if not isinstance(value, (cresset.Tensor, numbers.Number)):
            raise TypeError(f"isin: argument '{name}' must be a Tensor or a number, not {type(value).__name__}")
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

_unique, _unique_dim = operator("_unique2"), operator("_unique_dim")
_unique_runs, _unique_runs_dim = operator("_unique_consecutive"), operator("_unique_consecutive_dim")


def _refuse_derivative(distinct, name):
    def refused():
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    @distinct.derivative
    def _(grad):
        yield refused  # where it is asked for: a view made before its base required a gradient has nobody who does


_refuse_derivative(_unique, "_unique2")
_refuse_derivative(_unique_dim, "unique_dim")
_refuse_derivative(_unique_runs, "unique_consecutive")
_refuse_derivative(_unique_runs_dim, "unique_dim_consecutive")


@function(method=True)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None) -> Any:
    """The distinct elements in increasing order, or the distinct slices along `dim`.

    Args:
        sorted: kept for compatibility; the result is always sorted.
        return_inverse: also give the place of each element of `input` in the result.
        return_counts: also give the number of times each occurs.

    >>> cresset.unique(cresset.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        return _asked(_unique(input, sorted, return_inverse, return_counts), return_inverse, return_counts)
    return _asked(_unique_dim(input, dim, sorted, return_inverse, return_counts), return_inverse, return_counts)


def _asked(results, return_inverse, return_counts):
    """Of values, inverse and counts, those that were asked for."""
    values, inverse, counts = results
    if not (return_inverse or return_counts):
        return values
    return (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


@function(method=True)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None) -> Any:
    """The elements (or slices along `dim`) without those that repeat the one before.

    >>> cresset.unique_consecutive(cresset.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if dim is None:
        return _asked(_unique_runs(input, return_inverse, return_counts), return_inverse, return_counts)
    return _asked(_unique_runs_dim(input, dim, return_inverse, return_counts), return_inverse, return_counts)


# --- places in a sorted sequence ---

searchsorted = operator("searchsorted", """Where elements would have to be inserted into a sequence to keep it sorted.

    Args:
        sorted_sequence: sorted along the last dimension; a vector, or with the leading dimensions of `input`.
        input: the elements, or a number.
        right: after equal elements, instead of before them. `side="right"` says the same.
        sorter: the indices that sort `sorted_sequence`, if it is not sorted itself.

    >>> cresset.searchsorted(cresset.tensor([1, 3, 5]), cresset.tensor([0, 3, 6]))
    tensor([0, 1, 3])
    """)  # fmt: skip

bucketize = operator("bucketize", """The bucket of each element: bucket i ends at `boundaries[i]`, which belongs to it
    unless `right`.

    >>> cresset.bucketize(cresset.tensor([1, 3, 4]), cresset.tensor([1, 3, 5]))
    tensor([0, 1, 2])
    """)  # fmt: skip


# --- inside vmap ---

batch("_unique2", "_unique_dim", "_unique_consecutive", "_unique_consecutive_dim")("dynamic")


@batch("bucketize")
def _(call):
    return call.run(call.front(), *call.args[1:]) if call.dims[1] is None else NotImplemented


@batch("searchsorted")
def _(call):
    """A sorted sequence of its own for every row, which the batch may be of too."""
    sequence, _, *options, sorter = call.args
    if call.dims[0] is None and call.rank(0) == 1 and (sorter is None or call.dims[-1] is None):
        return call.run(sequence, call.front(1), *options, sorter)
    if call.rank(0) == 1 and call.rank(1) != 1:  # one sequence for a sample's numbers in any shape
        values = call.full(1)
        order = sorter if sorter is None else call.full(len(call.args) - 1)
        return call.run(call.full(0), values.reshape(call.size, -1), *options, order).reshape(values.shape)
    order = sorter if sorter is None else call.full(len(call.args) - 1)
    return call.run(call.full(0), call.full(1), *options, order)


# --- as ONNX ---


@onnx("searchsorted")
def _(g, sorted_sequence, input, right, side, sorter):
    if len(sorted_sequence.shape) != 1 or sorter is not None:
        raise g.unsupported("rows of their own, or a sorter")
    return _places(g, sorted_sequence, input, right or side == "right")


@onnx("bucketize")
def _(g, input, boundaries, right):
    return _places(g, boundaries, input, right)


def _places(g, row, input, right):
    """How many numbers of the row lie before each one."""
    dtype = cresset.promote_types(row.dtype, input.dtype)
    x = g.unsqueeze(g.cast(input, input.dtype, dtype), [len(input.shape)])
    before = g.op("LessOrEqual" if right else "Less", g.cast(row, row.dtype, dtype), x)
    count = g.reduce("ReduceSum", g.cast(before, cresset.bool, cresset.int64), [len(input.shape)], False)
    return g.cast(count, cresset.int64, g.result.dtype)
