"""Elements added at the ends of dimensions: what nn.functional.pad asks for once its arguments are checked."""

import cresset

from .registry import operator

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
