"""`torch.utils.deterministic`: whether deterministic runs fill memory that nobody initialized."""

import sys
import types

from ..backends import determinism


class _Settings(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Fill `empty` tensors with nan (floats), the largest number (integers) or True while algorithms are
        deterministic.
        """
        return determinism._state["fill"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise RuntimeError(f"fill_uninitialized_memory: expected a bool, but got {type(mode).__name__}")
        determinism._state["fill"] = mode
        determinism._tell_native()


sys.modules[__name__].__class__ = _Settings
