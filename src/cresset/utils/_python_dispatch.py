"""Questions about tensor subclasses that are made of other tensors."""

from .._native import Tensor

__all__ = ["is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]


def is_traceable_wrapper_subclass_type(t):
    """Whether a class is a subclass of Tensor that can take itself apart into tensors, and put together again."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t):
    """Whether an object is of such a class.

    >>> cresset.utils._python_dispatch.is_traceable_wrapper_subclass(cresset.ones(2))
    False
    """
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))
