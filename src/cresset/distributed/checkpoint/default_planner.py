"""torch.distributed.checkpoint.default_planner: settings of what is saved and loaded."""

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """What is saved: the entries of nested state by their paths, each once.

    Args:
        flatten_state_dict, flatten_sharded_tensors: always so.
        dedup_replicated_tensors: PyTorch's; without an effect there either.
        dedup_save_to_lowest_rank: what all processes have is written by the first of them; otherwise they divide it.
        enable_plan_caching: PyTorch's way to plan less often; there is no plan to keep here.
    """

    def __init__(
        self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank=False, enable_plan_caching=False,
    ):  # fmt: skip
        _always("DefaultSavePlanner", flatten_state_dict, flatten_sharded_tensors)
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank


class DefaultLoadPlanner:
    """What is loaded: the entries of the state_dict that is given.

    Args:
        flatten_state_dict, flatten_sharded_tensors: always so.
        allow_partial_load: entries that the checkpoint lacks stay as they are; an error otherwise.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        _always("DefaultLoadPlanner", flatten_state_dict, flatten_sharded_tensors)
        self.allow_partial_load = allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty state_dict all that the checkpoint has.

    Args:
        keys: only entries whose name begins with one of these.
    """

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def takes(self, path):
        """Whether an entry is loaded."""
        if self.keys is None:
            return True
        name = ".".join(map(str, path))
        return any(name == key or name.startswith(key + ".") for key in self.keys)


def _always(who, *flags):
    if not all(flags):
        raise NotImplementedError(f"{who}: nested state is always taken apart; flatten_* must be True")
