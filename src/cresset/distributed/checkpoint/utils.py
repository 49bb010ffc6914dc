"""torch.distributed.checkpoint.utils: from the index of an item to what is behind it."""

import cresset

from .parts import part_of

__all__ = ["find_state_dict_object", "find_tensor_shard"]


def find_tensor_shard(tensor, index):
    """The part of a tensor here that an index means; of a plain tensor it is all.

    Args:
        tensor: a plain or a distributed one.
        index: a MetadataIndex.
    """
    part = part_of(tensor)
    if index.offset is not None and tuple(index.offset) != tuple(part.offset):
        raise ValueError(
            f"checkpoint: this process has the part of {index.fqn} at {tuple(part.offset)}, not that at "
            f"{tuple(index.offset)}"
        )
    return part.local


def find_state_dict_object(state_dict, index):
    """The entry of a state_dict that an index means.

    Args:
        state_dict: entries by their names.
        index: a MetadataIndex.
    """
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, cresset.Tensor):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a Tensor, yet it has an offset in its index")
    return value
