"""Counting: how many elements, or how much weight, fall into each bin."""

import math
from typing import Any

import cresset

from . import return_types
from .dimensions import is_integer
from .registry import function, onnx, operator

bincount = operator("bincount", """How often each of 0, 1, 2, … occurs in a vector, or the sum of the weights of its
    occurrences.

    Args:
        weights: a weight for each element.
        minlength: the least length of the result.

    >>> cresset.bincount(cresset.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """)  # fmt: skip


@bincount.derivative
def _(grad):
    raise NotImplementedError("the derivative for 'bincount' is not implemented.")


_without_derivative = operator("_without_derivative")


@_without_derivative.derivative
def _(grad, name):
    is_sentence = " " in name
    raise NotImplementedError(name if is_sentence else f"the derivative for '{name}' is not implemented.")


@_without_derivative.batch
def _(call):
    others = [call.expanded(value, dim) for value, dim in zip(call.args[1], call.dims[1], strict=True)]
    return call.run(call.full(0), others, call.args[2])


histc = operator("histc", """The number of elements in each of `bins` equal intervals from `min` to `max`; others do
    not count.

    If `min` equals `max`, the range is that of the elements.

    >>> cresset.histc(cresset.tensor([1.0, 2.0, 1.0]), bins=3, min=0, max=3)
    tensor([0., 2., 1.])
    """)  # fmt: skip


@function(method=True, out=True)
def histogram(input, bins, *, range=None, weight=None, density=False) -> Any:
    """The number (or weight) of elements in each bin, and the edges of the bins.

    Args:
        bins: the number of equal bins, or their edges, increasing. A bin has its left edge; the last has both.
        range: the outer edges, if `bins` is a number; else those of the elements.
        weight: a weight for each element.
        density: divide so that the integral is 1.

    >>> count, edges = cresset.histogram(cresset.tensor([1.0, 2.0, 4.0]), bins=3)
    >>> count, edges
    (tensor([1., 1., 1.]), tensor([1., 2., 3., 4.]))
    """
    if isinstance(bins, cresset.Tensor) and range is not None:
        raise TypeError("histogram: the edges of the bins are given, so that range has no meaning")
    if weight is not None and weight.numel() != input.numel():
        raise RuntimeError(
            "histogram: if weight tensor is provided it should have the same shape as the input tensor, "
            f"but got {list(weight.shape)} and {list(input.shape)}"
        )
    points = input.reshape(-1, 1)
    weight = None if weight is None else weight.reshape(-1)
    hist, (edges,) = _histogram("histogram", points, [bins], range, weight, density)
    sources = [t for t in (input, bins, weight) if isinstance(t, cresset.Tensor) and t.requires_grad]
    if sources and cresset.is_grad_enabled():
        hist, edges = (_without_derivative(result, sources, "histogram") for result in (hist, edges))
    return return_types.histogram((hist, edges))


@function
def histogramdd(input, bins, *, range=None, weight=None, density=False) -> Any:
    """The number (or weight) of points in each cell of a grid; the last dimension of `input` holds coordinates.

    Args:
        bins: the number of bins, one for each coordinate, or for each the edges of its bins.
        range: the outer edges of each coordinate, in one list; else those of the points.
        weight: a weight for each point.
        density: divide so that the integral is 1.

    >>> count, edges = cresset.histogramdd(cresset.tensor([[0.0, 0.0], [1.0, 1.0]]), bins=[2, 2])
    >>> count
    tensor([[1., 0.],
            [0., 1.]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"histogramdd: input tensor should have at least 2 dimensions, got {input.ndim}")
    bins = [int(bins)] * input.size(-1) if is_integer(bins) else list(bins)
    if len(bins) != input.size(-1):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: "
            f"{len(bins)} and {input.size(-1)}"
        )
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise RuntimeError(
            "histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )
    points = input.reshape(math.prod(input.shape[:-1]), input.size(-1))
    weight = None if weight is None else weight.reshape(-1)
    return return_types.histogramdd(_histogram("histogramdd", points, bins, range, weight, density))


def _histogram(who, points, bins, bounds, weight, density):
    """The histogram of the rows of `points`, and the tuple of edges."""
    points = points.detach()
    halves = points.dtype in (cresset.float16, cresset.bfloat16) and all(
        isinstance(bin, cresset.Tensor) for bin in bins
    )
    if points.dtype not in (cresset.float32, cresset.float64) and not halves:
        raise NotImplementedError(f"{who}: not implemented for {points.dtype}")
    if weight is not None and weight.dtype != points.dtype:
        raise RuntimeError(
            f"{who}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
            f"but got {points.dtype} and {weight.dtype}"
        )
    if bounds is not None and len(bounds) != 2 * len(bins):
        raise RuntimeError(
            f"{who}: for a {len(bins)}-dimensional histogram range should have {2 * len(bins)} elements, "
            f"but got {len(bounds)}"
        )
    if math.prod(bin.numel() if isinstance(bin, cresset.Tensor) else max(bin, 0) for bin in bins) >= 2**63:
        raise RuntimeError(f"{who}: Storage size calculation overflowed with as many bins as {bins}")
    edges = tuple(
        _edges(who, points, bin, None if bounds is None else bounds[2 * axis : 2 * axis + 2], axis)
        for axis, bin in enumerate(bins)
    )
    if not edges:
        return points.new_zeros(()), ()
    shape = [edge.numel() - 1 for edge in edges]
    cell, inside = 0, True
    for axis, (edge, size) in enumerate(zip(edges, shape)):
        coordinate = points[:, axis].contiguous()
        inside = (coordinate >= edge[0]) & (coordinate <= edge[-1]) & inside
        place = cresset.searchsorted(edge, coordinate, right=True) - 1
        cell = cell * size + place.clamp(max=size - 1)
    cell = cell[inside]
    amount = points.new_ones(cell.shape) if weight is None else weight.detach()[inside]
    hist = points.new_zeros(math.prod(shape)).index_add_(0, cell, amount).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for axis, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1] + [1] * (len(edges) - 1 - axis))
    return hist, edges


def _edges(who, points, bins, bounds, axis):
    """The edges of one coordinate's bins."""
    if isinstance(bins, cresset.Tensor):
        if bins.ndim != 1:
            raise RuntimeError(
                f"{who}: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins tensor "
                f"for dimension {axis}"
            )
        if bins.dtype != points.dtype:
            raise RuntimeError(
                f"{who}: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{points.dtype} and bins for dimension {axis} with dtype {bins.dtype}"
            )
        return bins.detach()
    if bins <= 0:
        raise RuntimeError(f"{who}: bins must be > 0, but got {bins} for dimension {axis}")
    if bounds is not None:
        low, high = bounds
    elif points.size(0) == 0:
        low, high = 0.0, 1.0
    else:
        low, high = (bound.item() for bound in cresset.aminmax(points[:, axis]))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{who}: dimension {axis}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{who}: min should not exceed max, but got min {low} max {high} for dimension {axis}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return cresset.linspace(low, high, bins + 1, dtype=points.dtype, device=points.device)


# --- as ONNX ---


@onnx("bincount")
def _(g, input, weights, minlength):
    if g.result.shape != (minlength,):
        raise g.unsupported("the number of counts depends on the elements; give minlength")
    row = g.op("Range", g.number(0, cresset.int64), g.number(minlength, cresset.int64), g.number(1, cresset.int64))
    hits = g.cast(
        g.op("Equal", g.unsqueeze(g.cast(input, input.dtype, cresset.int64), [1]), row), cresset.bool, g.result.dtype
    )
    if weights is not None:
        hits = g.op("Mul", hits, g.unsqueeze(g.cast(weights, weights.dtype, g.result.dtype), [1]))
    return g.reduce("ReduceSum", hits, [0], False)
