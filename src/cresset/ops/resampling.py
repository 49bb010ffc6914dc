"""Images in another size: what nn.functional.interpolate asks of bytes and of floats."""

import cresset

from .registry import operator

operator(
    "resized_bytes",
    """Bytes with other numbers of elements along `dim`: each is a sum of old ones, from `first` on, times its row of
    weights.

    The weights are whole numbers in units of 2^-bits; a sum is rounded, and cut to what a byte holds.
    """,
    batch="along",
)

_resample = operator(
    "_resample",
    """The last one to three dimensions with `new_size` elements, each made of a few of the `old_size` there were; or
    with `back` the other way: to each old element is added what the new ones made of it have.

    Args:
        modes: for each dimension: 0 stays as it is, 1 nearest, 2 nearest-exact, 3 linear, 4 cubic; with filters as wide
            as the step, 5 linear, 6 cubic, 7 Lanczos.
        depth_step: from one new element to the next in old ones, along the last dimension but two; and so on.

    >>> cresset._resample(cresset.tensor([1.0, 3.0]), [2], [4], [3], False, False, 1.0, 1.0, 0.5)
    tensor([1.0000, 1.5000, 2.5000, 3.0000])
    """,
    batch="leading",
)


@_resample.derivative
def _(grad, old_size, new_size, modes, align_corners, back, depth_step, height_step, width_step):
    """It is linear, and `back` is its transpose."""
    yield lambda: cresset._resample(
        grad, old_size, new_size, modes, align_corners, not back, depth_step, height_step, width_step
    )


def cubic_weights(t, a=-0.75):
    """How four neighbors count for a place `t` between the second and the third: Keys' cubic convolution."""

    def near(x):  # |x| <= 1
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):  # 1 < |x| < 2
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]
