"""Elements added at the ends of dimensions: what nn.functional.pad asks for once its arguments are checked."""

import cresset

from .registry import onnx, operator

CONSTANT, REFLECT, REPLICATE, CIRCULAR = range(4)  # PadMode of native/base/padded_axis.h

_pad = operator(
    "_pad",
    """The last dimensions with elements added at their ends, or with `back` the other way: to each element is added
    what those that were made of it have.

    Args:
        pad: (before, after) for the last dimension, then for the one before it, and so on; negative amounts take away.
        mode: 0 a constant, 1 a mirror image, 2 the border repeated, 3 around in a circle.
        value: the constant.

    >>> cresset._pad(cresset.tensor([1.0, 2.0, 3.0]), [2, 0], 1, 0, False)
    tensor([3., 2., 1., 2., 3.])
    """,
    batch="leading",
)


@_pad.derivative
def _(grad, pad, mode, value, back):
    """It is linear but for the constant, and `back` is its transpose; that of a constant takes the same away again."""
    if mode == CONSTANT:
        yield lambda: cresset._pad(grad, [-amount for amount in pad], mode, 0, False)
    else:
        yield lambda: cresset._pad(grad, pad, mode, 0, not back)


@onnx("_pad")
def _(g, input, pad, mode, value, back):
    """What `nn.functional.pad` has no node for: what is taken away, and the way around."""
    if back:
        raise g.unsupported("the gradient of padding")
    x, sizes = g.name(input), list(input.shape)
    for k in range(len(pad) // 2):
        axis = len(sizes) - 1 - k
        (before, after), size = pad[2 * k : 2 * k + 2], sizes[axis]
        if mode == CIRCULAR:
            added = [(size - before, size)] * (before > 0), [(0, after)] * (after > 0)
            parts = [*added[0], (max(-before, 0), size - max(-after, 0)), *added[1]]
            x = g.op("Concat", *(g.slice(x, axis, *part) for part in parts), axis=axis)
        elif mode != CONSTANT and min(before, after) < 0:
            x = g.slice(x, axis, max(-before, 0), size - max(-after, 0))
    if mode == CIRCULAR:
        return x
    amounts = pad if mode == CONSTANT else [max(amount, 0) for amount in pad]
    whole = [0] * (2 * len(sizes) - len(amounts))  # the dimensions in front
    before, after = ([*whole[::2], *reversed(amounts[i::2])] for i in (0, 1))
    filler = g.number(value, input.dtype) if mode == CONSTANT else None
    return g.op("Pad", x, g.sizes([*before, *after]), filler, mode={0: "constant", 1: "reflect", 2: "edge"}[mode])
