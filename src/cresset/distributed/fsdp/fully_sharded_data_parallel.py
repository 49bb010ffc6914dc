"""torch.distributed.fsdp.fully_sharded_data_parallel: where PyTorch keeps the class."""

from ..sharding import FullyShardedDataParallel

__all__ = ["FullyShardedDataParallel"]
