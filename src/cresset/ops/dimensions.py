"""Dimension numbers and sizes as users write them: negative dims, and sizes given as one sequence or one by one."""

from contextlib import suppress
from numbers import Integral
from operator import index

import cresset


def wrap_dim(dim, ndim, who):
    """`dim` counted from the front. A 0-d tensor has the dims of a 1-d one.

    >>> wrap_dim(-1, 3, "flatten")
    2
    """
    count = ndim or 1
    if not -count <= dim < count:
        raise IndexError(
            f"{who}: Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        )
    return dim + count if dim < 0 else dim


def wrap_dims(dims, ndim, who):
    """A list of different dims, counted from the front; `dims` is an int or a sequence of ints.

    >>> wrap_dims((0, -1), 3, "tensordot")
    [0, 2]
    """
    wrapped = [wrap_dim(dim, ndim, who) for dim in ((dims,) if is_integer(dims) else dims)]
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RuntimeError(f"{who}: dim {dim} appears multiple times in the list of dims {tuple(dims)}")
    return wrapped


def is_integer(value):
    """Whether a value is one integer: an int that is no bool, one of NumPy's, or a tensor of no dimension that is.

    >>> is_integer(2), is_integer(cresset.tensor(2)), is_integer((2,)), is_integer(True)
    (True, True, False, False)
    """
    if type(value) is int:  # nearly always
        return True
    if isinstance(value, Integral):
        return not isinstance(value, bool)
    if not isinstance(value, cresset.Tensor) or value.ndim:
        return False
    return not (value.is_floating_point() or value.is_complex() or value.dtype == cresset.bool)


def integers(who, name, value):
    """One integer or several, as a tuple of ints.

    >>> integers("conv2d", "stride", 2), integers("conv2d", "stride", [2, 1])
    ((2,), (2, 1))
    """
    if type(value) is int:  # nearly always
        return (value,)
    several = (value,) if is_integer(value) else value
    if isinstance(several, (tuple, list, cresset.Tensor)):
        with suppress(TypeError, ValueError):
            return tuple(map(index, several))
    raise TypeError(f"{who}(): argument '{name}' must be tuple of ints, not {value!r}")


def sizes(first, more=()):
    """The sizes of `f(2, 3)` and of `f((2, 3))`, as a tuple.

    >>> sizes(2, (3,)), sizes([2, 3])
    ((2, 3), (2, 3))
    """
    if not isinstance(first, (tuple, list)):
        return (first, *more)
    if more:
        raise TypeError(f"expected numbers one by one or one {type(first).__name__} of them, got {(first, *more)}")
    return tuple(first)


def sequence(tensors, who):
    """The tensors of a list argument, checked to be a list (a tensor is not) and to have an element."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{who}: argument 'tensors' must be tuple of Tensors, not {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError(f"{who}: expects a non-empty TensorList")
    return tensors


def check_tensors(who, **arguments):
    """Raise unless all arguments, given by name, are tensors: something with a dtype and dimensions."""
    for name, value in arguments.items():
        if not hasattr(value, "ndim"):
            raise TypeError(f"{who}(): argument '{name}' must be Tensor, not {type(value).__name__}")


def spread(values, rank):
    """One number for each spatial dimension."""
    values = list(values) if isinstance(values, (tuple, list)) else [values]
    return values * rank if len(values) == 1 else values
