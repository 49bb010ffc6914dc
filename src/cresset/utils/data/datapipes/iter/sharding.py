"""PyTorch's place for some streams."""

from .....data.pipes.shares import SHARDING_PRIORITIES, ShardingFilterIterDataPipe, _ShardingIterDataPipe  # noqa: F401
