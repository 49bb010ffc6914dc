"""Sums of processes on one machine go by memory that they share: the same numbers as by MPI, bit for bit everywhere."""

import pytest

PROGRAM = """
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(5)
R = dist.ReduceOp
functions = {R.SUM: torch.add, R.MAX: torch.maximum, R.MIN: torch.minimum, R.PRODUCT: torch.mul}
floats = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
for dtype in (*floats, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
    for count in (0, 1, 63, 1024, 1025, 4096, 131072, 131073, 700001):
        each = [(torch.rand(count) * 8 - (0 if dtype == torch.uint8 else 4)).to(dtype) for _ in range(size)]
        for op in functions:
            wanted = each[0].clone()
            for other in each[1:]:  # in the order of ranks
                wanted = functions[op](wanted, other)
            mine = each[rank].clone()
            dist.all_reduce(mine, op)
            EXACT and (torch.equal(mine, wanted) or exit(f"{dtype} {count} {op}"))
            torch.testing.assert_close(mine, wanted)
x = torch.tensor([float("nan") if rank == 1 else 1.0] * 5000)
dist.all_reduce(x, dist.ReduceOp.MAX)
assert x.isnan().all() or not EXACT  # MPI leaves open what becomes of nan
"""  # noqa: E501


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("shared", ["1", "0"])
def test_sums_are_those_of_one_process(job, monkeypatch, shared, processes):
    monkeypatch.setenv("CRESSET_SHARED_MEMORY", shared)
    done = job(PROGRAM.replace("EXACT", "True" if shared == "1" else "False"), processes=processes)
    assert done.status == 0, done.err


@pytest.mark.parametrize("shared", ["1", "0"])
def test_tensors_are_averaged_together_where_they_lie(job, monkeypatch, shared):
    monkeypatch.setenv("CRESSET_SHARED_MEMORY", shared)
    done = job(
        """
from cresset.distributed.collectives import average
dist.init_process_group("gloo")
rank = dist.get_rank()
group = dist.new_group([1, 0])
for counts in ((3, 5), (1000, 1, 200000, 0, 77), (600000,)) * 3:  # both kinds of stores are tried
    tensors = [torch.full((n,), float(i + 1) * (rank + 1)) for i, n in enumerate(counts)]
    turned = torch.arange(6.0).view(2, 3).t() * (rank + 1)
    before = [t.data_ptr() for t in [*tensors, turned]]
    works = [average([*tensors, turned], 2, dist.group.WORLD), average([torch.ones(300000)], 2, group)]
    for work in works[::-1]:
        work.wait()
    assert [t.data_ptr() for t in [*tensors, turned]] == before
    for i, t in enumerate(tensors):
        assert torch.equal(t, torch.full_like(t, 1.5 * (i + 1))), (i, t)
    assert torch.equal(turned, torch.arange(6.0).view(2, 3).t() * 1.5)
"""
    )
    assert done.status == 0, done.err


def test_many_sums_may_be_under_way_and_are_waited_for_in_any_order(job):
    done = job(
        """
dist.init_process_group("gloo")
rank = dist.get_rank()
groups = [dist.group.WORLD, dist.new_group([0, 1]), dist.new_group([1, 0])]
tensors = [torch.full((n,), float(rank + i)) for i, n in enumerate([1, 200000, 5, 400000, 1000] * 8)]
order = range(len(groups)) if rank == 0 else reversed(range(len(groups)))  # groups are independent of each other
works = {}
for g in order:
    for i, t in enumerate(tensors):
        if i % len(groups) == g:
            works[i] = dist.all_reduce(t, group=groups[g], async_op=True)
for i in sorted(works, reverse=True):
    works[i].wait()
    assert torch.equal(tensors[i], torch.full_like(tensors[i], 2.0 * i + 1)), i
"""
    )
    assert done.status == 0, done.err
