"""The patches that a sliding window sees in images, as columns, and images of such columns: what nn.functional.unfold
and fold ask for once their arguments are checked."""

import cresset

from .registry import operator

_from_columns = operator(
    "_from_columns",
    """Images whose patches are the columns (..., kernel area, places); where patches overlap they are summed.

    Args:
        size: height and width of the images; so kernel and padding.
        steps: of both from one element of a patch to the next, and of both from one patch to the next.

    >>> cresset._from_columns(cresset.tensor([[1.0, 2.0], [2.0, 3.0]]), [1, 3], [1, 2], [1, 1, 1, 1], [0, 0])
    tensor([[1., 4., 3.]])
    """,
    batch="leading",
)


@_from_columns.derivative
def _(grad, kernel, steps, padding):
    """It is linear: each element of a patch gets what its place in the image has."""
    yield lambda: columns_of(grad, kernel, steps[:2], padding, steps[2:])


@_from_columns.onnx
def _(g, input, size, kernel, steps, padding):
    if g.opset < 18:
        raise g.unsupported("fold before opset 18")
    columns = g.reshape(input, [-1, *input.shape[-2:]])
    image = g.op(
        "Col2Im", columns, g.sizes(size), g.ints(kernel), dilations=list(steps[:2]), pads=[*padding, *padding],
        strides=list(steps[2:]),
    )  # fmt: skip
    return g.reshape(image, [*input.shape[:-2], *size])


def places_of(size, kernel, dilation, padding, stride):
    """How many places a kernel fits along each dimension."""
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]


def _patch_index(places, kernel, dilation, stride, width, device):
    """Where in a flattened padded image the elements of the patches lie: (kernel places, patches), flattened."""

    def along(dim):
        inside = cresset.arange(kernel[dim], device=device) * dilation[dim]
        return inside[:, None] + cresset.arange(places[dim], device=device) * stride[dim]

    rows, columns = along(0) * width, along(1)
    return (rows[:, None, :, None] + columns[None, :, None, :]).reshape(-1)


def columns_of(input, kernel, dilation, padding, stride):
    """Of images (..., height, width) the patches, as columns (..., kernel area, places)."""
    places = places_of(input.shape[-2:], kernel, dilation, padding, stride)
    padded = input
    if any(padding):
        padded = cresset._pad(input, [padding[1], padding[1], padding[0], padding[0]], 0, 0, False)
    index = _patch_index(places, kernel, dilation, stride, padded.size(-1), padded.device)
    patches = padded.flatten(-2).index_select(-1, index)
    return patches.reshape(*input.shape[:-2], kernel[0] * kernel[1], places[0] * places[1])
