"""torch._C._autograd: what programs ask of PyTorch's native autograd by name."""

from .. import _native
from .._native import SavedTensor

__all__ = ["SavedTensor"]


def _make_saved_tensor(tensor, is_output=False):
    """A tensor as it would be kept for backward, through the hooks that are active."""
    return _native.save_tensor(tensor, is_output)


def _saved_tensors_hooks_is_enabled():
    """Whether hooks on saved tensors are allowed here: not inside disable_saved_tensors_hooks."""
    return _native.saved_hooks_message() is None


def _saved_tensors_hooks_get_disabled_error_message():
    """What disable_saved_tensors_hooks was given; None outside of it."""
    return _native.saved_hooks_message()


def _saved_tensors_hooks_disable(message):
    """From now on hooks on saved tensors are refused in these words."""
    _native.disable_saved_hooks(message)


def _saved_tensors_hooks_enable():
    """Allow hooks on saved tensors again."""
    _native.disable_saved_hooks(None)


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook):
    """What entering saved_tensors_hooks does."""
    _native.push_saved_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks():
    """What leaving saved_tensors_hooks does."""
    _native.pop_saved_hooks()


def _unsafe_set_version_counter(tensors, versions):
    """Say that tensors are at these versions: changes in place that came meanwhile go unnoticed."""
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(
                f"_unsafe_set_version_counter: Cannot set a version_counter to a value below 0: {version}"
            )
        _native.set_version(tensor, version)
