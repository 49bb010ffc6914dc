"""torch.distributed._tensor.experimental: the older place."""

from ..tensor.experimental import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
