"""Flattening by a structure that is known already."""

from .. import pytree

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(tree, spec):
    """The leaves of a tree that must have the structure `spec`."""
    leaves, found = pytree.tree_flatten(tuple(tree) if isinstance(tree, list) else tree)
    if found != spec:
        raise ValueError(f"tree_flatten_spec: the graph was traced with inputs of the structure {spec}, got {found}")
    return leaves
