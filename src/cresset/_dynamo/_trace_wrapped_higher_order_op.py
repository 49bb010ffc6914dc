"""A mode that PyTorch needs for indexing inside vmap."""

from ..overrides import OperatorMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(OperatorMode):
    """Inside, `x[i]` by a tensor `i` of a vmap indexes instead of asking for its number. That is so without it, too:
    calls go through as they are.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
