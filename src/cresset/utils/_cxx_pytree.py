"""PyTorch's other form of the functions on trees, by the package optree. Here there is one form (cresset/pytree)."""

from . import _pytree

__all__ = _pytree.__all__
globals().update({name: value for name, value in vars(_pytree).items() if not name.startswith("__")})
PyTreeSpec = _pytree.TreeSpec
