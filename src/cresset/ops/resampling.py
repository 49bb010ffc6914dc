"""Images in another size: what nn.functional.interpolate asks of bytes. Other dtypes are resized by products and sums
there.
"""

from .registry import operator

operator(
    "resized_bytes",
    """Bytes with other numbers of elements along `dim`: each is a sum of old ones, from `first` on, times its row of
    weights.

    The weights are whole numbers in units of 2^-bits; a sum is rounded, and cut to what a byte holds.
    """,
    batch="along",
)
