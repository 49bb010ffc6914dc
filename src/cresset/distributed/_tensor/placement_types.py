"""torch.distributed._tensor.placement_types: the older place."""

from ..tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
