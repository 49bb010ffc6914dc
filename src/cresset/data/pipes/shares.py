"""A part of a stream for each of several readers, such as the workers of a DataLoader."""

from enum import IntEnum

from .pipe import IterDataPipe, functional_datapipe, length

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Among whom a stream is parted; of several, the first here is parted first."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe):
    def apply_sharding(self, num_of_instances, instance_id, sharding_group):
        """Take the share `instance_id` of `num_of_instances`."""
        raise NotImplementedError(f"{type(self).__name__}: a pipe that is parted needs a method apply_sharding()")


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th sample, once `apply_sharding` has said which (functional name: ``sharding_filter``).

    Args:
        sharding_group_filter: of the groups that share, only this one counts.
    """

    def __init__(self, source_datapipe, sharding_group_filter=None):
        super().__init__()
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups, self.num_of_instances, self.instance_id = {}, 1, 0

    def apply_sharding(self, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                count, mine = self.groups[group]
                self.instance_id += self.num_of_instances * mine
                self.num_of_instances *= count

    def __iter__(self):
        for place, sample in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self):
        (whole,) = length(self, self.source_datapipe)
        return len(range(self.instance_id, whole, self.num_of_instances))
