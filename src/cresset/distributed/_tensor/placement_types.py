"""torch.distributed._tensor.placement_types: the older place."""

from ..tensor._dtensor_spec import DTensorSpec, TensorMeta
from ..tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta"]
