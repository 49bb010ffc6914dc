"""Placements, which part of a tensor a process has, and names in PyTorch's other places."""

import pytest

import cresset as torch
from cresset.distributed import algorithms, fsdp
from cresset.distributed import tensor as spread
from cresset.distributed.tensor._utils import compute_local_shape_and_global_offset
from cresset.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard


def test_plain_tensors_and_modules_are_not_spread():
    assert not isinstance(torch.ones(1), spread.DTensor)
    assert not isinstance(torch.nn.Linear(1, 1), (fsdp.FullyShardedDataParallel, fsdp.FSDPModule))


def test_placements_are_values():
    assert (
        Shard(1) == Shard(dim=1) != Shard(0)
        and Shard(1).is_shard(1)
        and not Shard(1).is_shard(0)
        and Replicate().is_replicate()
    )
    assert (
        Partial("avg").is_partial("avg")
        and not Partial().is_partial("avg")
        and _StridedShard(0, split_factor=2).split_factor == 2
    )


class Grid:
    shape = (2, 3)

    def __init__(self, place):
        self.place = place

    def get_coordinate(self):
        return self.place


@pytest.mark.parametrize(
    "place, shape, offset", [((0, 0), (4, 3), (0, 0)), ((1, 2), (3, 1), (4, 6)), ((1, 1), (3, 3), (4, 3))]
)
def test_which_part_of_a_tensor_a_process_has(place, shape, offset):
    assert compute_local_shape_and_global_offset((7, 7), Grid(place), [Shard(0), Shard(1)]) == (shape, offset)


def test_parts_cover_a_dimension_without_overlap():
    for size in range(9):
        parts = [Shard.local_shard_size_and_offset(size, 4, rank) for rank in range(4)]
        assert [place for length, first in parts for place in range(first, first + length)] == list(range(size))


def test_join_in_one_process_runs_the_loop_and_calls_the_hooks():
    called = []

    class Hook(algorithms.JoinHook):
        def post_hook(self, is_last_joiner):
            called.append(is_last_joiner)

    class Mine(algorithms.Joinable):
        join_device, join_process_group = torch.device("cpu"), None

        def __init__(self):
            super().__init__()

        def join_hook(self, **kwargs):
            return Hook()

    distributed = torch.distributed
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        with algorithms.Join([Mine()]):
            algorithms.Join.notify_join_context(Mine())
        with algorithms.Join([Mine()], enable=False):
            pass
    finally:
        distributed.destroy_process_group()
    assert called == [True]
    with pytest.raises(ValueError, match="at least one joinable"):
        algorithms.Join([])


def test_names_in_pytorchs_other_places():
    from cresset.distributed import _functional_collectives, _tensor, checkpoint, constants, distributed_c10d

    assert (
        distributed_c10d.get_rank is torch.distributed.get_rank
        and constants.default_pg_timeout == torch.distributed.default_pg_timeout
    )
    assert _tensor.DTensor is spread.DTensor and isinstance(torch.nn.Linear(1, 1), checkpoint.stateful.Stateful)
    x = torch.ones(1)
    assert _functional_collectives.wait_tensor(x) is x
