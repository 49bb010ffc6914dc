"""The `reduction` argument of losses: none, mean or sum, and the older arguments that meant the same."""

import warnings

from ..._native import name_node


def reduce_loss(loss, reduction, node=None):
    """`loss`, its mean, or its sum, which autograd calls `node` where PyTorch has one operator for it all.

    >>> from cresset.nn.functional.reduction import reduce_loss
    >>> reduce_loss(cresset.tensor([1.0, 3.0]), "mean")
    tensor(2.)
    """
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    else:
        check_reduction(reduction)
    return loss if node is None else name_node(loss, node)


def check_reduction(reduction):
    """Refuse what is not none, mean or sum."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def weighted_mean(loss, weight, reduction):
    """Reduce `loss`, already multiplied by `weight`; its mean is the weighted one."""
    return loss.sum() / weight.sum() if reduction == "mean" else reduce_loss(loss, reduction)


def from_legacy(size_average, reduce, emit_warning=True):
    """The reduction that the old arguments `size_average` and `reduce` ask for."""
    averages, reduces = size_average is None or bool(size_average), reduce is None or bool(reduce)
    reduction = "none" if not reduces else "mean" if averages else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    return reduction


def resolve(reduction, size_average, reduce):
    """`reduction`, unless one of the old arguments is given."""
    return reduction if size_average is None and reduce is None else from_legacy(size_average, reduce)
