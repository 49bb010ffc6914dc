"""functorch.experimental.control_flow: control flow as functions."""

from ....func.control_flow import cond, map

__all__ = ["cond", "map"]
