"""torch._export: the names that tensor subclasses use of the insides of PyTorch's export. cresset.export has ours."""

from . import wrappers

__all__ = ["wrappers"]
