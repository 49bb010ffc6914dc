"""NCCL: the collectives of tensors on GPUs. Several processes share one card here, which NCCL allows where it takes
them for processes of different machines."""

import pytest

from cresset.distributed.engines import nccl

pytestmark = pytest.mark.skipif(not nccl.is_available(), reason="needs a GPU and NCCL")

START = """
import datetime, os, time
os.environ.update(NCCL_HOSTID="h" + os.environ["RANK"], NCCL_SOCKET_IFNAME="lo")
torch.cuda.set_device(0)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
rank, size = dist.get_rank(), dist.get_world_size()
assert dist.get_backend() == "nccl"

def full(n, value, dtype=torch.float32):
    return torch.full((n,), value, dtype=dtype, device="cuda")
"""


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_collectives_of_tensors_on_gpus(launched, processes):
    done = launched(
        START
        + """
total = size * (size + 1) // 2
for op, wanted in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.AVG, total / size), (dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1)):
    x = full(6, float(rank + 1)).view(2, 3)
    dist.all_reduce(x, op=op)
    assert x.tolist() == [[wanted] * 3] * 2, (op, x)
for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int32, torch.int64, torch.uint8, torch.complex64):
    x = full(5, rank + 1, dtype)
    dist.all_reduce(x)
    assert x.tolist() == [total] * 5 and x.dtype == dtype, x
x = torch.tensor([rank == 0, True, False], device="cuda")
dist.all_reduce(x)
assert x.tolist() == [True, True, False]
x = torch.arange(6.0, device="cuda").view(2, 3).t() if rank == 0 else torch.zeros(3, 2, device="cuda")
dist.broadcast(x, 0)
assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
root = size - 1
x = full(1, rank + 1.0)
dist.reduce(x, root)
assert rank != root or x.item() == total
places = [torch.zeros(2, device="cuda") for _ in range(size)]
dist.all_gather(places, full(2, float(rank)))
assert [p.tolist() for p in places] == [[r, r] for r in range(size)]
x = torch.zeros(2 * size, device="cuda")
dist.all_gather_into_tensor(x, full(2, float(rank)))
assert x.view(size, 2).tolist() == [[r, r] for r in range(size)]
places = [torch.zeros(1, device="cuda") for _ in range(size)] if rank == 0 else None
dist.gather(full(1, rank * 2.0), places, dst=0)
assert rank or [p.item() for p in places] == [2.0 * r for r in range(size)]
x = torch.zeros(2, device="cuda")
dist.scatter(x, [full(2, r + 5.0) for r in range(size)] if rank == root else None, src=root)
assert x.tolist() == [rank + 5.0] * 2
x = torch.zeros(2, device="cuda")
dist.reduce_scatter_tensor(x, torch.arange(2.0 * size, device="cuda"))
assert x.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
x = torch.zeros(size, device="cuda")
dist.all_to_all_single(x, torch.arange(float(size), device="cuda") + 100 * rank)
assert x.tolist() == [100.0 * r + rank for r in range(size)]
x = [torch.zeros(rank + 1, device="cuda") for _ in range(size)]
dist.all_to_all(x, [full(r + 1, float(rank)) for r in range(size)])
assert [t.tolist() for t in x] == [[float(r)] * (rank + 1) for r in range(size)]
many = [full(3, float(rank)), full(4, 1.0)]
dist.all_reduce_coalesced(many)
assert many[1].tolist() == [size] * 4 and many[0].tolist() == [total - size] * 3
work = dist.all_reduce(full(4, 1.0), async_op=True)
assert work.get_future().then(lambda f: f.value()[0] + 1).wait().tolist() == [size + 1.0] * 4
big = torch.randn(1 << 20, device="cuda")
for _ in range(5):  # what is on the stream before is seen, and what comes after waits
    mine = big * 2
    dist.all_reduce(mine)
    mine -= 0
    wanted = mine.clone()
assert work.is_completed()
if size > 1:
    x = torch.zeros(1, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, full(1, float(rank)), (rank + 1) % size), dist.P2POp(dist.irecv, x, (rank - 1) % size)]):
        work.wait()
    assert x.item() == (rank - 1) % size
    if rank == 0:
        dist.send(full(3, 7.0), 1)
    if rank == 1:
        x = torch.zeros(3, device="cuda")
        dist.recv(x, 0)
        assert x.tolist() == [7, 7, 7]
every = [None] * size
dist.all_gather_object(every, {"rank": rank})
assert [e["rank"] for e in every] == list(range(size))
x = torch.ones(2)  # on the CPU: by way of the GPU
dist.all_reduce(x)
assert x.tolist() == [size] * 2
half = dist.new_group(list(range((size + 1) // 2)))
if rank < (size + 1) // 2:
    x = full(1, 1.0)
    dist.all_reduce(x, group=half)
    assert x.item() == (size + 1) // 2
dist.barrier()
print("good")
dist.destroy_process_group()
""",  # noqa: E501
        processes,
    )
    assert done.status == 0 and done.out.count("good") == processes, (done.out, done.err)


@pytest.mark.parametrize("processes", [2, 4])
def test_a_model_on_gpus_learns_as_in_one_process(launched, processes):
    done = launched(
        START
        + """
import copy
import cresset.nn as nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
single = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50)).cuda()
model = nn.parallel.DistributedDataParallel(copy.deepcopy(single), device_ids=[0], bucket_cap_mb=0.01)
one, all_ = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(single.parameters(), 0.1)
ids = torch.randint(0, 50, (4 * size, 12)).cuda()
for step in range(20):
    losses = []
    for net, optimizer, x in ((model, one, ids[rank::size]), (single, all_, ids)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    dist.all_reduce(losses[0], dist.ReduceOp.AVG)
    assert torch.allclose(losses[0], losses[1], rtol=1e-4), (step, losses)
print("good")
dist.destroy_process_group()
""",
        processes,
    )
    assert done.status == 0 and done.out.count("good") == processes, (done.out, done.err)


def test_a_rank_that_does_not_come_is_named_and_a_new_group_works(launched):
    done = launched(
        START
        + """
x = full(3, 1.0)
dist.all_reduce(x)
torch.cuda.synchronize()
lost = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2))
y = full(3, 1.0)
dist.all_reduce(y, group=lost)  # connections are made
torch.cuda.synchronize()
start = time.time()
if rank == 0:
    try:
        dist.all_reduce(y, group=lost)  # rank 1 does not come
        torch.cuda.synchronize()
        dist.all_reduce(y, group=lost)
    except dist.DistBackendError as error:
        assert "rank 1: did not come" in str(error) and "program.py" in str(error), error
        assert time.time() - start < 4.5, time.time() - start
    else:
        raise AssertionError("nobody noticed")
else:
    time.sleep(5)
again = dist.new_group([0, 1])
z = full(3, 2.0)
before = time.time()
dist.all_reduce(z, group=again)
assert z.tolist() == [4, 4, 4]
print("good", round(time.time() - start, 2), round(time.time() - before, 2))
dist.destroy_process_group()
""",
        2,
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_ranks_that_do_not_do_the_same_are_named(launched):
    done = launched(
        START
        + """
dist.all_reduce(full(3, 1.0))
torch.cuda.synchronize()
start = time.time()
try:
    dist.all_reduce(full(3 + rank, 1.0)) if rank < 5 else None
    for _ in range(100):
        time.sleep(0.1)
        dist.all_reduce(full(2, 1.0))
        torch.cuda.synchronize()
except dist.DistBackendError as error:
    words = f"rank {rank} after {time.time() - start:.1f}: {error}".replace(chr(10), " | ")
    os.write(1, (words + chr(10)).encode())
""",
        2,
    )
    lines = [line for line in done.out.splitlines() if line.startswith("rank")]
    assert len(lines) == 2, (done.out, done.err)
    for line in lines:
        assert "[3] of torch.float32" in line and "[4] of torch.float32" in line and "program.py:" in line, line
        assert float(line.split("after ")[1].split(":")[0]) < 5
