"""torch.utils._python_dispatch: modes and questions of __torch_dispatch__. What does the work is cresset.dispatch."""

from .._native import Tensor

# Where the work is done: names of cresset.dispatch.modes.
_LATER = [
    "BaseTorchDispatchMode", "TorchDispatchMode", "_disable_current_modes", "_get_current_dispatch_mode",
    "_get_current_dispatch_mode_stack", "_pop_mode", "_pop_mode_temporarily", "_push_mode",
    "is_in_any_mode_without_ignore_compile_internals", "is_in_torch_dispatch_mode", "return_and_correct_aliasing",
    "transform_subclass",
]  # fmt: skip


def __getattr__(name):
    from ..dispatch import modes  # upward: the public name of what stands above, loaded when it is asked for

    if name in _LATER:
        return getattr(modes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
