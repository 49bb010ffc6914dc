"""torch.distributed.distributed_c10d: where PyTorch keeps the functions of torch.distributed."""

from typing import NewType

from .. import distributed as _distributed
from ._functional_collectives import _by_name
from .world import World as _World
from .world import default_group as _default_group

globals().update({name: getattr(_distributed, name) for name in _distributed.__all__})
__all__ = list(_distributed.__all__)

GroupName = NewType("GroupName", str)  # the type of a group's name in signatures


def _get_default_group():
    """The group of all; ValueError if there is none."""
    return _default_group("_get_default_group")


def _resolve_process_group(group_name):
    """A group by its name."""
    return _by_name(group_name)


def __getattr__(name):
    if name == "_pg_map":  # the groups and what carries them
        return {group: (group._backend, group._store) for group in _World.groups}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
