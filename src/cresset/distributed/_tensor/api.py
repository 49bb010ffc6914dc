"""torch.distributed._tensor.api: the older place."""

from ..tensor._api import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
