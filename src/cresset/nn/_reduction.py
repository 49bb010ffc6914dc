"""torch.nn._reduction: the numbers that PyTorch's native losses have for a reduction."""

from .functional.reduction import check_reduction
from .functional.reduction import from_legacy as legacy_get_string

__all__ = ["get_enum", "legacy_get_string"]


def get_enum(reduction):
    """0 for none, 1 for mean, 2 for sum.

    >>> cresset.nn._reduction.get_enum("sum")
    2
    """
    check_reduction(reduction)
    return ("none", "mean", "sum").index(reduction)
