"""foreach_map: a function of tensors, for lists of them."""

from itertools import repeat

__all__ = ["foreach_map"]


def foreach_map(op, *operands, **kwargs):
    """`op` of the first elements of all lists, of the second ones, and so on. What is no list goes into each call.

    >>> from cresset._higher_order_ops.foreach_map import foreach_map
    >>> foreach_map(cresset.add, [cresset.ones(2), cresset.zeros(1)], 3)
    [tensor([4., 4.]), tensor([3.])]
    """
    if not any(isinstance(operand, (list, tuple)) for operand in operands):
        return op(*operands, **kwargs)
    columns = [operand if isinstance(operand, (list, tuple)) else repeat(operand) for operand in operands]
    lengths = {len(column) for column in columns if not isinstance(column, repeat)}
    if len(lengths) > 1:
        raise ValueError(f"foreach_map: the lists have different lengths: {', '.join(map(str, sorted(lengths)))}")
    return [op(*each, **kwargs) for each in zip(*columns, strict=False)]
