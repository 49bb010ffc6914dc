"""torch.distributed._functional_collectives: collectives that give new tensors. They are complete when they return, so
that there is nothing to wait for.
"""

import cresset

from . import collectives, nn
from .reductions import RedOpType
from .world import World, get_rank, get_world_size

__all__ = [
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_tensor",
    "wait_tensor",
]


class AsyncCollectiveTensor(cresset.Tensor):
    """PyTorch's tensor whose elements are on their way. Collectives are complete here when they return, so none is ever
    made; `isinstance` answers False."""


def wait_tensor(tensor):
    """A tensor whose collective is complete: the tensor itself."""
    return tensor


def _group(group):
    """A group: itself, its name, or a mesh of one dimension, alone or with the number of one."""
    if isinstance(group, str):
        return _by_name(group)
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    return group.get_group() if hasattr(group, "get_group") else group


def _by_name(name):
    for known in World.groups:
        if known.group_name == name:
            return known
    raise ValueError(f"no process group has the name {name!r}")


def _operation(words):
    """A ReduceOp by PyTorch's word for it: "sum", "avg", ..."""
    known = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR",
             "bxor": "BXOR"}  # fmt: skip
    if not isinstance(words, str):
        return words
    if words.lower() not in known:
        raise ValueError(f"unknown reduction {words!r}; there are {', '.join(known)}")
    return RedOpType[known[words.lower()]]


def all_reduce(self, reduceOp, group, tag=""):
    """The reduced tensors of all processes.

    Args:
        reduceOp: "sum", "avg", "max", ...
        group: a ProcessGroup, its name or a mesh.
        tag: of PyTorch's; a group is known by itself.
    """
    made = self.clone(memory_format=cresset.contiguous_format)
    collectives.all_reduce(made, _operation(reduceOp), _group(group))
    return made


def broadcast(self, src, group, tag=""):
    """The tensor of one process.

    Args:
        src: its number in the group of all.
        tag: of PyTorch's; a group is known by itself.
    """
    made = self.clone(memory_format=cresset.contiguous_format)
    collectives.broadcast(made, src, _group(group))
    return made


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The tensors of all processes, joined along a dimension.

    Args:
        gather_dim: which.
        tag: of PyTorch's; a group is known by itself.
    """
    group = _group(group)
    places = [cresset.empty_like(self, memory_format=cresset.contiguous_format) for _ in range(get_world_size(group))]
    collectives.all_gather(places, self.contiguous(), group)
    return cresset.cat(places, gather_dim)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """This process's part along a dimension of the reduced tensors of all.

    Args:
        reduceOp: "sum", "avg", "max", ...
        scatter_dim: which dimension.
        tag: of PyTorch's; a group is known by itself.
    """
    group = _group(group)
    size = get_world_size(group)
    if self.shape[scatter_dim] % size:
        raise AssertionError(
            f"reduce_scatter_tensor: dimension {scatter_dim} of {list(self.shape)} cannot be divided by {size}"
        )
    parts = [part.contiguous() for part in self.chunk(size, scatter_dim)]
    made = cresset.empty_like(parts[0])
    collectives.reduce_scatter(made, parts, _operation(reduceOp), group)
    return made


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Rows of a tensor go to the processes in turn, and come from them.

    Args:
        output_split_sizes, input_split_sizes: how many rows come from and go to each process; equal parts if None.
        tag: of PyTorch's; a group is known by itself.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    made = self.new_empty(rows, *self.shape[1:])
    collectives.all_to_all_single(made, self.contiguous(), output_split_sizes, input_split_sizes, _group(group))
    return made


def permute_tensor(self, src_dst, group, tag=""):
    """The tensor of the process that sends to this one, flat.

    Args:
        src_dst: to whom each process sends, by numbers in the group.
        tag: of PyTorch's; a group is known by itself.
    """
    group = _group(group)
    size, rank = get_world_size(group), get_rank(group)
    came = [self.numel() if source_to == rank else 0 for source_to in src_dst]
    gone = [self.numel() if target == src_dst[rank] else 0 for target in range(size)]
    return all_to_all_single(self.reshape(-1), came, gone, group)


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Rows of a tensor go to the processes in turn, and come from them; with a derivative.

    Args:
        output_split_sizes, input_split_sizes: how many rows come from and go to each process; equal parts if None.
        tag: of PyTorch's; a group is known by itself.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    made = self.new_empty(rows, *self.shape[1:])
    return nn.all_to_all_single(made, self, output_split_sizes, input_split_sizes, group=_group(group))
