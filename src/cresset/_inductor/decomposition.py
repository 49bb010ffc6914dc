"""What operators are made of, as programs tell it PyTorch's code generator. The compiler here sees the operators that
an implementation calls without being told, so that the table is only for programs that read it.
"""

__all__ = ["decompositions", "register_decomposition"]

decompositions = {}


def register_decomposition(ops):
    """A decorator: the function says what these operators are made of.

    >>> from cresset._inductor.decomposition import decompositions, register_decomposition
    >>> @register_decomposition([cresset.ops.aten.relu])
    ... def relu(x):
    ...     return x.clamp(min=0)
    >>> decompositions.pop(cresset.ops.aten.relu) is relu
    True
    """

    def register(function):
        for op in ops if isinstance(ops, (list, tuple)) else [ops]:
            decompositions[op] = function
        return function

    return register
