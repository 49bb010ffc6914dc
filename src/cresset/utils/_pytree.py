"""PyTorch's place for the functions on trees of containers, which are in cresset/pytree."""

from .. import pytree
from ..pytree import *  # noqa: F403

__all__ = pytree.__all__

# The tables, key types and single steps are used too, though PyTorch does not list them.
for _part in (pytree.containers, pytree):
    globals().update({name: value for name, value in vars(_part).items() if not name.startswith("__")})
