"""Finite differences and their sums: diff, gradient, and the trapezoidal rule."""

import cresset

from .._native import name_node
from .dimensions import wrap_dim, wrap_dims
from .registry import function


@function(method=True, out="cast")
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The `n`-th difference of neighbors along `dim`; of booleans, whether they differ.

    Args:
        prepend, append: tensors to join to `input` along `dim` before.

    >>> cresset.diff(cresset.tensor([1, 3, 6]))
    tensor([2, 3])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"diff: order must be non-negative but got {n}")
    dim = wrap_dim(dim, input.ndim, "diff")
    for other in (prepend, append):
        if other is not None and other.ndim != input.ndim:
            raise RuntimeError(
                "diff expects prepend or append to be the same dimension as input, "
                f"got {other.ndim} and {input.ndim} dimensions"
            )
        if other is not None and any(a != b for d, (a, b) in enumerate(zip(other.shape, input.shape)) if d != dim):
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension {dim}; got {list(other.shape)} and {list(input.shape)}"
            )
    if n == 0:
        return name_node(input.clone(), "torch::autograd::CopyBackwards")
    if prepend is not None or append is not None:
        input = cresset.cat([part for part in (prepend, input, append) if part is not None], dim)
    result = input
    for _ in range(min(n, input.size(dim))):
        length = result.size(dim) - 1
        later, earlier = result.narrow(dim, 1, length), result.narrow(dim, 0, length)
        result = later ^ earlier if result.dtype == cresset.bool else later - earlier
    return result


@function
def gradient(input, *, spacing=None, dim=None, edge_order=1) -> tuple:
    """Estimate the derivative along each dimension by central differences, exact for parabolas.

    Args:
        spacing: the distance of neighbors: a number, one per dimension, or one tensor of coordinates per dimension.
        dim: the dimension or dimensions; all if None.
        edge_order: 1 or 2: the order of the estimate at both ends.

    >>> cresset.gradient(cresset.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if input.dtype == cresset.uint8:
        raise RuntimeError("gradient: torch.gradient does not support uint8 input: its differences would wrap round.")
    dims = list(range(input.ndim)) if dim is None else wrap_dims(dim, input.ndim, "gradient")
    if isinstance(spacing, cresset.Tensor):
        raise TypeError("gradient: spacing must be a number, a list of numbers or a list of tensors, not a Tensor")
    if spacing is None or not isinstance(spacing, (tuple, list)):
        spacing = [1 if spacing is None else spacing] * len(dims)
    elif len(spacing) != len(dims):
        raise RuntimeError(
            "gradient: expected spacing to be unspecified, a scalar or to have the length of the dim argument, "
            f"but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: only supports edge_order=1 and edge_order=2, got {edge_order}.")
    for d in dims:
        if input.size(d) < edge_order + 1:
            raise RuntimeError(
                "gradient: expected each dimension size to be at least edge_order+1, "
                f"got {input.size(d)} in dimension {d}"
            )
    return tuple(_derivative(input, h, d, edge_order) for h, d in zip(spacing, dims))


def _derivative(input, spacing, dim, edge_order):
    """The derivative along one dimension; `spacing` is a number, or the coordinates."""
    length = input.size(dim)

    def part(start, count):
        return input.narrow(dim, start, count)

    start = [part(place, 1) for place in range(edge_order + 1)]
    end = [part(length - 1 - place, 1) for place in range(edge_order + 1)]
    if not isinstance(spacing, cresset.Tensor):
        inside = (part(2, length - 2) - part(0, length - 2)) / spacing / 2
        near_start = near_end = spacing
        if edge_order == 2:
            first = (start[0] * -1.5 + start[1] * 2 - start[2] * 0.5) / spacing
            last = (end[2] * 0.5 - end[1] * 2 + end[0] * 1.5) / spacing
    else:
        if spacing.ndim != 1 or spacing.size(0) != length:
            raise RuntimeError(
                "gradient: expected the coordinates of a dimension to be a vector of its size: "
                f"{list(spacing.shape)} for size {length}"
            )
        width = spacing.diff()
        # The derivative of the parabola through a point and its neighbors.
        before, after = width[:-1], width[1:]
        total = before + after
        weights = (-after / (before * total), (after - before) / (before * after), before / (after * total))
        inside = sum(
            weight.reshape([-1] + [1] * (input.ndim - 1 - dim)) * part(place, length - 2)
            for place, weight in enumerate(weights)
        )
        near_start, near_end = width[0], width[-1]
        if edge_order == 2:
            first = sum(_end_slope(start, width[0], width[1]))
            last = -sum(reversed(_end_slope(end, width[-1], width[-2])))
    if edge_order == 1:
        first, last = (start[1] - start[0]) / near_start, (end[0] - end[1]) / near_end
    return cresset.cat([first, inside, last], dim)


def _end_slope(points, near, far):
    """What each of three points, `near` and `far` apart, adds to the slope at the first of the parabola through
    them."""
    total = near + far
    weights = (-(2 * near + far) / (near * total), total / (near * far), -near / (far * total))
    return [weight * point for weight, point in zip(weights, points)]


@function(name="trapz")
@function
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integrate along `dim` by the trapezoidal rule.

    Args:
        x: the coordinates; without them neighbors are `dx` apart.
        dx: the distance of neighbors, 1 if None.

    >>> cresset.trapezoid(cresset.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    dim = _checked_dim("trapezoid", y, x, dx, dim)
    if y.size(dim) == 0:
        return y.new_zeros((*y.shape[:dim], *y.shape[dim + 1 :]))
    if x is None:  # all but half of the first and the last
        inner = y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5
        return name_node(inner * (1 if dx is None else dx), "MulBackward1")
    areas, half = _areas(y, x, dx, dim)
    return name_node(areas.sum(dim) * half, "DivBackward1")


@function
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral so far along `dim`, by the trapezoidal rule; arguments as in `trapezoid`.

    >>> cresset.cumulative_trapezoid(cresset.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    dim = _checked_dim("cumulative_trapezoid", y, x, dx, dim)
    areas, half = _areas(y, x, dx, dim)
    return name_node(areas.cumsum(dim) * half, "CumsumBackward0" if x is None else "DivBackward1")


def _checked_dim(who, y, x, dx, dim):
    if x is not None and dx is not None:
        raise TypeError(f"{who}: got both coordinates x and a distance dx={dx}")
    if x is not None and not isinstance(x, cresset.Tensor):
        raise TypeError(f"{who}: argument 'x' must be Tensor, not {type(x).__name__}")
    for name, tensor in (("y", y), ("x", x)):
        if tensor is not None and tensor.dtype == cresset.bool:
            raise RuntimeError(f"{who}: received a bool input for `{name}`, but bool is not supported")
    if y.ndim == 0:
        raise IndexError(f"{who}: Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, y.ndim, who)


def _areas(y, x, dx, dim):
    """The areas of the trapezoids between neighbors, and the factor that they have yet to be multiplied with."""
    sums = _but_last(y, dim) + _but_first(y, dim)
    if x is None:
        return sums, (1 if dx is None else dx) / 2
    if x.ndim == 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError(
                f"trapezoid: There must be one `x` value for each sample point, got {x.size(0)} for {y.size(dim)}"
            )
        x = x.reshape([-1] + [1] * (y.ndim - 1 - dim))
    x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    return sums * (
        _but_first(x, dim) - _but_last(x, dim)
    ), 0.5  # `dim` counts from the front, also where x has more of them


def _but_first(tensor, dim):
    return tensor.narrow(dim, min(1, tensor.size(dim)), max(tensor.size(dim) - 1, 0))


def _but_last(tensor, dim):
    return tensor.narrow(dim, 0, max(tensor.size(dim) - 1, 0))
