"""torch._C._functorch: what a tensor is inside of vmap. A tensor of vmap stands for a batch; see func/batching.py."""

from .._native import Tensor, batch_of, level_of
from ..func.batching import fallback
from ..func.vmapping import _add_batch_dim, _remove_batch_dim  # noqa: F401


def _is_vmap_fallback_enabled():
    """Whether vmap runs an operator that has no batching rule once for each sample."""
    return fallback["enabled"]


def _set_vmap_fallback_enabled(enabled):
    """Let vmap run an operator that has no batching rule once for each sample, or refuse it."""
    fallback["enabled"] = bool(enabled)


def is_batchedtensor(tensor):
    """Whether a tensor is one of vmap."""
    return level_of(tensor) > 0


def maybe_get_level(tensor):
    """The level of the vmap that a tensor is of, -1 for an ordinary one."""
    return level_of(tensor) or -1


def maybe_get_bdim(tensor):
    """Which dimension of its batch counts the samples, -1 for an ordinary tensor."""
    if not is_batchedtensor(tensor):
        return -1
    dim = batch_of(tensor)[1]
    return -1 if dim is None else dim


def get_unwrapped(tensor):
    """The batch that a tensor of vmap stands for."""
    if not isinstance(tensor, Tensor) or not is_batchedtensor(tensor):
        raise RuntimeError("get_unwrapped: No wrappers present!, the tensor is not one of vmap")
    return batch_of(tensor)[0]
