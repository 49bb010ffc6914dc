"""An operator with a result of a dtype of its own: integers of 8 bits multiplied to 32 bits."""

import cresset
from cresset.pytree import tree_map_only

__all__ = ["out_dtype"]


def out_dtype(op, output_dtype, *args):
    """op(*args), computed so that nothing is lost on the way to a result of `output_dtype`.

    >>> row, column = cresset.full((1, 3), 100, dtype=cresset.int8), cresset.full((3, 1), 100, dtype=cresset.int8)
    >>> cresset._higher_order_ops.out_dtype(cresset.ops.aten.mm.default, cresset.int32, row, column)
    tensor([[30000]], dtype=torch.int32)
    """
    if not isinstance(output_dtype, cresset.dtype):
        raise ValueError(f"out_dtype: expected a dtype as the second argument, got {output_dtype!r}")
    widened = tree_map_only(cresset.Tensor, lambda t: t.to(cresset.promote_types(t.dtype, output_dtype)), args)
    return op(*widened).to(output_dtype)
