"""A line of a GPU's assembler on each element: the name, for programs that import it."""

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*inputs, asm_str, constraints, dtype, is_pure=True, pack=1):
    """Assembler is not run; an error says so.

    >>> cresset._higher_order_ops.inline_asm_elementwise.inline_asm_elementwise(
    ...     cresset.ones(1), asm_str="mov.b32 $0, $1;", constraints="=r,r", dtype=cresset.int32)
    Traceback (most recent call last):
    NotImplementedError: inline_asm_elementwise: assembler is not run; write the formula with operators
    """
    raise NotImplementedError("inline_asm_elementwise: assembler is not run; write the formula with operators")
