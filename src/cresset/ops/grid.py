"""Images and volumes read at the places of a grid: what nn.functional.grid_sample computes, as one kernel, and of
ordinary operators where it is differentiated twice."""

from itertools import product

import cresset

from .registry import onnx, operator
from .resampling import cubic_weights

MODES, PADDINGS = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]

_grid_sample = operator(
    "_grid_sample",
    """`nn.functional.grid_sample` with its mode and padding as their numbers.

    >>> image = cresset.tensor([[[[1.0, 3.0]]]])
    >>> cresset._grid_sample(image, cresset.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[2.]]]])
    """,
)
_input_gradient = operator(
    "_grid_sample_input_gradient",
    """To each element of the input is added what the places that were read from it have, by their weights.""",
)
_grid_gradient_of = operator(
    "_grid_sample_grid_gradient",
    """How the samples, counted by `grad_output`, change with the grid.""",
)


@_grid_sample.derivative
def _(grad, input, grid, mode, padding, align_corners):
    yield lambda: cresset._grid_sample_input_gradient(grad, grid, input.shape, mode, padding, align_corners)
    yield lambda: _grid_gradient(grad, input, grid, mode, padding, align_corners)


@_input_gradient.derivative
def _(grad, grad_output, grid, mode, padding, align_corners):
    """It is linear in `grad_output`, and reading is its transpose; in the grid it is what reading is."""
    yield lambda: cresset._grid_sample(grad, grid, mode, padding, align_corners)
    yield lambda: _grid_gradient(grad_output, grad, grid, mode, padding, align_corners)


def _grid_gradient(grad, input, grid, mode, padding, align_corners):
    if MODES[mode] == "nearest":
        return cresset.zeros_like(grid)
    if not cresset.is_grad_enabled():
        return cresset._grid_sample_grid_gradient(grad, input, grid, mode, padding, align_corners)
    leaf = grid if grid.requires_grad else grid.detach().requires_grad_()
    samples = sampled(input, leaf, MODES[mode], PADDINGS[padding], align_corners)
    return cresset.autograd.grad(samples, leaf, grad, create_graph=True)[0]


# --- inside vmap ---


def _fold(call, places):
    """Runs it with the batch as part of the samples, which come first in these arguments."""
    args = list(call.args)
    for i in places:
        args[i] = call.full(i).flatten(0, 1)
    return args


@_grid_sample.batch
def _(call):
    return call.run(*_fold(call, (0, 1))).unflatten(0, (call.size, -1))


@_input_gradient.batch
def _(call):
    args = _fold(call, (0, 1))
    args[2] = (call.size * args[2][0], *args[2][1:])
    return call.run(*args).unflatten(0, (call.size, -1))


@_grid_gradient_of.batch
def _(call):
    return call.run(*_fold(call, (0, 1, 2))).unflatten(0, (call.size, -1))


def sampled(input, grid, mode, padding_mode, align_corners):
    """The same of ordinary operators."""
    samples, channels, *sizes = input.shape
    spatial = len(sizes)
    flat = input.flatten(2)
    # One coordinate tensor (N, places) for each spatial dimension; the grid counts from the last one.
    places = [_unnormalize(grid[..., spatial - 1 - k].flatten(1), sizes[k], align_corners) for k in range(spatial)]
    if mode != "bicubic":
        places = [_bring_inside(x, n, padding_mode, align_corners) for x, n in zip(places, sizes, strict=True)]

    if mode == "nearest":
        neighbors = [[(x.round(), None)] for x in places]
    elif mode == "bilinear":
        neighbors = []
        for x in places:
            first = x.detach().floor()
            neighbors.append([(first, first + 1 - x), (first + 1, x - first)])
    else:
        neighbors = []
        for x, n in zip(places, sizes, strict=True):
            first = x.detach().floor()
            near = [_bring_inside(first + k, n, padding_mode, align_corners) for k in (-1, 0, 1, 2)]
            neighbors.append(list(zip(near, cubic_weights(x - first), strict=True)))

    total = None
    for corner in product(*neighbors):
        weight = inside = None
        index = 0
        for (x, w), n in zip(corner, sizes, strict=True):
            index = index * n + x.long().clamp(0, n - 1)
            weight = w if weight is None or w is None else weight * w
            within = (x >= 0) & (x <= n - 1)
            inside = within if inside is None else inside & within
        value = flat.gather(2, index.unsqueeze(1).expand(-1, channels, -1))
        if weight is not None:
            value = value * weight.unsqueeze(1)
        value = value.masked_fill(~inside.unsqueeze(1), 0)
        total = value if total is None else total + value
    return total.reshape(samples, channels, *grid.shape[1:-1])


def _unnormalize(x, size, align_corners):
    """From [-1, 1] to element numbers."""
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _bring_inside(x, size, padding_mode, align_corners):
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            x = x.masked_fill(cresset.ones_like(x, dtype=cresset.bool), 0)  # all the same, with a gradient of zeros
        else:
            distance = (x - low).abs()
            extra, turns = distance.fmod(span), (distance.detach() / span).floor()
            x = cresset.where(turns % 2 == 0, extra + low, span - extra + low)
    # At the border and beyond it the place no longer depends on the grid.
    return cresset.where(x > 0, cresset.where(x < size - 1, x, x.new_full((), size - 1)), x.new_zeros(()))


@onnx("_grid_sample")
def _(g, input, grid, mode, padding, align_corners):
    if g.opset < 16 or (g.opset < 20 and len(input.shape) == 5):
        raise g.unsupported("reading at the places of a grid needs opset 16, and in volumes 20")
    names = ["linear", "nearest", "cubic"] if g.opset >= 20 else MODES
    return g.op(
        "GridSample", input, grid, mode=names[mode], padding_mode=PADDINGS[padding], align_corners=int(align_corners)
    )
