"""What a DataLoader does to a pipe: one seed an epoch, the same in all processes, and a share for each reader."""

import sys

import cresset

from ..samplers import drawn_seed
from .graph import apply_random_seed, apply_sharding

__all__ = ["among_processes", "seed_of_epoch", "shared", "shuffled_by"]


def among_processes():
    """How many processes train together, and which of them this one is."""
    distributed = sys.modules.get("cresset.distributed")  # upward: who has not imported it has met nobody
    meets = distributed is not None and distributed.is_initialized()
    return (distributed.get_world_size(), distributed.get_rank()) if meets else (1, 0)


def seed_of_epoch(generator):
    """A seed for the pipes of an epoch, in every process the one that the first has drawn."""
    seeds = [drawn_seed(generator)]
    if among_processes()[0] > 1:
        from ... import distributed  # upward: all processes shuffle alike

        distributed.broadcast_object_list(seeds)
    return seeds[0]


def shuffled_by(pipe, seed):
    """Give the pipes that draw random numbers theirs by this seed."""
    return apply_random_seed(pipe, cresset.Generator().manual_seed(seed))


def shared(pipe, workers=1, worker=0):
    """Give a pipe the share of one of `workers` in this process."""
    count, mine = among_processes()
    return apply_sharding(pipe, workers * count, worker * count + mine)
