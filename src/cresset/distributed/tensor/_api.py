"""torch.distributed.tensor._api: where PyTorch keeps the class."""

from .creation import distribute_module, distribute_tensor
from .dtensor import DTensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
