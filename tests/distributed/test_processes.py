"""Several processes: the collectives, models that stay alike, and what each says when another fails."""

import re
import signal
import time

import pytest

START = """
import datetime
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank, size = dist.get_rank(), dist.get_world_size()
"""


@pytest.mark.parametrize("processes", [2, 3])
def test_collectives(job, processes):
    done = job(
        START
        + """
total = size * (size + 1) // 2
for op, wanted in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.AVG, total / size), (dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1)):
    x = torch.full((2, 3), float(rank + 1))
    dist.all_reduce(x, op=op)
    assert x.tolist() == [[wanted] * 3] * 2, (op, x)
for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.complex64):
    x = torch.full((5,), rank + 1, dtype=dtype)
    dist.all_reduce(x)
    assert x.tolist() == [total] * 5 and x.dtype == dtype, x
x = torch.tensor([rank == 0, True, False])
dist.all_reduce(x)
assert x.tolist() == [True, True, False]
x = torch.tensor([6 + rank])
dist.all_reduce(x, dist.ReduceOp.BOR)
assert x.item() == (7 if size == 2 else 15)
x = torch.arange(6.0).view(2, 3).t() if rank == 0 else torch.zeros(3, 2)
dist.broadcast(x, 0)
assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
x = torch.tensor([rank + 1.0])
dist.reduce(x, 1)
assert rank != 1 or x.item() == total
places = [torch.zeros(2) for _ in range(size)]
dist.all_gather(places, torch.full((2,), float(rank)))
assert [p.tolist() for p in places] == [[r, r] for r in range(size)]
places = [torch.zeros(r + 1) for r in range(size)]
dist.all_gather(places, torch.full((rank + 1,), float(rank)))
assert [p.tolist() for p in places] == [[r] * (r + 1) for r in range(size)]
places = [torch.zeros(1) for _ in range(size)] if rank == 0 else None
dist.gather(torch.tensor([rank * 2.0]), places, dst=0)
assert rank or [p.item() for p in places] == [2.0 * r for r in range(size)]
x = torch.zeros(2)
dist.scatter(x, [torch.full((2,), r + 5.0) for r in range(size)] if rank == 1 else None, src=1)
assert x.tolist() == [rank + 5.0] * 2
x = torch.zeros(2)
dist.reduce_scatter_tensor(x, torch.arange(2.0 * size))
assert x.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
x = torch.zeros(size)
dist.all_to_all_single(x, torch.arange(float(size)) + 100 * rank)
assert x.tolist() == [100.0 * r + rank for r in range(size)]
x = [torch.zeros(rank + 1) for _ in range(size)]
dist.all_to_all(x, [torch.full((r + 1,), float(rank)) for r in range(size)])
assert [t.tolist() for t in x] == [[float(r)] * (rank + 1) for r in range(size)]
work = dist.all_reduce(torch.ones(4), async_op=True)
assert work.get_future().then(lambda f: f.value()[0] + 1).wait().tolist() == [size + 1.0] * 4
if rank == 0:
    dist.send(torch.arange(3.0), 1, tag=7)
if rank == 1:
    x = torch.zeros(3)
    assert dist.recv(x, tag=7) == 0 and x.tolist() == [0, 1, 2]
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % size), dist.P2POp(dist.irecv, x := torch.zeros(1), (rank - 1) % size)])
[w.wait() for w in works]
assert x.item() == (rank - 1) % size
dist.monitored_barrier()
print("good")
dist.destroy_process_group()
""",  # noqa: E501
        processes,
    )
    assert done.status == 0 and done.out.count("good") == processes, done.err


def test_objects(job):
    done = job(
        START
        + """
every = [None] * size
dist.all_gather_object(every, {"rank": rank, "x": torch.ones(rank + 1)})
assert [e["rank"] for e in every] == [0, 1] and every[1]["x"].tolist() == [1, 1]
some = ["a", {"b": (1, 2.5)}] if rank == 0 else [None, None]
dist.broadcast_object_list(some, 0)
assert some == ["a", {"b": (1, 2.5)}]
mine = [None]
dist.scatter_object_list(mine, ["x", "y"] if rank == 0 else None, 0)
assert mine == ["xy"[rank]]
all_of = [None, None] if rank == 1 else None
dist.gather_object(rank * 10, all_of, 1)
assert rank == 0 or all_of == [0, 10]
if rank == 0:
    dist.send_object_list([1, "two"], 1)
else:
    got = [None, None]
    assert dist.recv_object_list(got, 0) == 0 and got == [1, "two"]
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_groups_of_some(job):
    done = job(
        START
        + """
low, high = dist.new_group([0, 1]), dist.new_group([1, 2])
x = torch.tensor([rank + 1.0])
if rank < 2:
    dist.all_reduce(x, group=low)
    assert x.item() == 3 and dist.get_rank(low) == rank and dist.get_world_size(low) == 2
else:
    assert low == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(low) == -1
    dist.all_reduce(x, group=low)
    assert x.item() == 3
x = torch.tensor([rank + 1.0])
if rank > 0:
    dist.broadcast(x, 2, group=high)
    assert x.item() == 3 and dist.get_group_rank(high, 2) == 1
x = torch.ones(1)
dist.all_reduce(x)
assert x.item() == 3
dist.destroy_process_group()
dist.init_process_group("gloo")
dist.all_reduce(x)
assert x.item() == 9
print("good")
""",
        3,
    )
    assert done.status == 0 and done.out.count("good") == 3, done.err


def test_models_stay_alike_and_learn_as_one(job):
    done = job(
        START
        + """
import copy
import cresset.nn as nn
from cresset.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
wrapped = DDP(model, bucket_cap_mb=0.0001, gradient_as_bucket_view=bool(0))
torch.manual_seed(5)
data, target = torch.randn(8, 6), torch.randint(0, 3, (8,))
model.eval()  # batch statistics are those of a part
single = copy.deepcopy(model)
one, all_ = torch.optim.AdamW(wrapped.parameters(), 0.01), torch.optim.AdamW(single.parameters(), 0.01)
wrapped.training = True
for step in range(20):
    for net, optimizer, x, y in ((wrapped, one, data[rank::size], target[rank::size]), (single, all_, data, target)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
for p, q in zip(model.parameters(), single.parameters()):
    assert torch.allclose(p, q, rtol=1e-5, atol=1e-6), (p - q).abs().max()
    both = [torch.zeros_like(p) for _ in range(size)]
    dist.all_gather(both, p.detach())
    assert both[0].equal(both[1])
assert wrapped._get_ddp_logging_data()["num_buckets_reduced"] > 1
with wrapped.no_sync():
    wrapped.zero_grad()
    wrapped(torch.full((1, 6), rank + 1.0)).sum().backward()
mine = model[3].bias.grad.clone()
wrapped(torch.zeros(1, 6)).sum().backward()
assert model[3].bias.grad.tolist() == [2.0] * 3 and mine.tolist() == [1.0] * 3
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_models_that_differ_are_refused(job):
    done = job(
        START
        + """
import os
import cresset.nn as nn
try:
    nn.parallel.DistributedDataParallel(nn.Linear(2, 2 + rank))
except RuntimeError as error:
    os.write(1, f"refused {error}{chr(10)}".encode())
"""
    )
    assert done.out.count("refused DistributedDataParallel: the models of rank 0 and rank 1 differ") == 2, done.err


@pytest.mark.parametrize(
    "name, program, words",
    [
        ("another size", "dist.all_reduce(torch.ones(2 + rank))", ["[2] of torch.float32", "[3] of torch.float32"]),
        ("another dtype", "dist.all_reduce(torch.ones(2, dtype=[torch.float32, torch.int64][rank]))",
            ["torch.float32", "torch.int64"]),
        ("another operation", "dist.barrier() if rank else dist.all_reduce(torch.ones(2))",
            ["barrier()", "all_reduce([2]"]),
        ("another reduction", "dist.all_reduce(torch.ones(2), [dist.ReduceOp.SUM, dist.ReduceOp.MAX][rank])",
            ["SUM", "MAX"]),
        ("another root", "dist.broadcast(torch.ones(2), rank)", ["src=0", "src=1"]),
    ],
)  # fmt: skip
def test_processes_that_do_not_do_the_same_say_who_does_what(job, name, program, words):
    done = job(
        START
        + f"""
import os, time
start = time.time()
try:
    {program}
except dist.DistBackendError as error:
    words = f"rank {{rank}} after {{time.time() - start:.1f}}: {{error}}".replace(chr(10), " | ")
    os.write(1, (words + chr(10)).encode())
"""
    )
    lines = [line for line in done.out.splitlines() if line.startswith("rank")]
    assert len(lines) == 2, (done.out, done.err)
    for line in lines:
        assert (
            "rank 0 on" in line
            and "rank 1 on" in line
            and "program.py:" in line
            and all(word in line for word in words)
        ), line
        assert float(line.split("after ")[1].split(":")[0]) < 5


@pytest.mark.parametrize(
    "how, words",
    [("os._exit(3)", r"rank 1 on \S+ ended"), ("os.kill(os.getpid(), 9)", r"rank 1 on \S+ ended"),
        ("raise KeyError('mine')", r"rank 1 on \S+ raised KeyError: 'mine', at \S+program.py:\d+"),
     ("os.kill(os.getpid(), signal.SIGSTOP)", r"rank 1 on \S+ gave no sign of life")],
)  # fmt: skip
def test_a_process_that_is_gone_is_named(job, how, words):
    start = time.monotonic()
    done = job(
        START
        + f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from the agent, which has seen it, too
dist.barrier()
if rank == 1:
    {how}
start = time.time()
try:
    dist.all_reduce(torch.ones(3))
except dist.DistBackendError as error:
    print(f"after {{time.time() - start:.1f}}: {{error}}", flush=True)
    os._exit(7)
""",
        options=["--shutdown-timeout", "6"],
    )
    assert re.search(words, done.out) and "program.py:" in done.out, (done.out, done.err)
    assert float(done.out.split("after ")[1].split(":")[0]) < 5
    assert done.status == 1 and "FAILED" in done.err
    assert time.monotonic() - start < 60


def test_a_process_that_does_not_come_is_named_after_the_timeout(job):
    done = job("""
import datetime, time
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
if dist.get_rank() == 0:
    try:
        dist.barrier()
    except dist.DistBackendError as error:
        print(error)
else:
    time.sleep(4)
""")
    words = (
        r"barrier: Timed out after 1\.\d s:\n  rank 0 on \S+: barrier\(\), at \S+program.py:\d+\n  rank 1: did "
        r"not come, on "
    )
    assert re.search(words, done.out), (done.out, done.err)


def test_a_failure_is_the_launchers_and_the_traceback_is_shown(job):
    done = job("""
import os, sys
from cresset.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("of my own")
main()
""")
    assert done.status == 1 and "ValueError: of my own" in done.err and "rank      : 1" in done.err


def test_a_job_that_fails_is_started_again(job, tmp_path):
    done = job(
        """
import os
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
assert x.item() == 2
if attempt < 2 and dist.get_rank() == attempt:
    os.kill(os.getpid(), 9)
dist.barrier()
os.write(1, f"good {attempt};".encode())  # in one piece, whoever else prints
""",
        options=["--max-restarts", "2", "--shutdown-timeout", "2"],
    )
    assert done.status == 0 and done.out.count("good 2;") == 2, (done.out, done.err)


def test_signals_end_all(tmp_path):
    import os
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text("import os, time; open(os.environ['RANK'], 'w').write(str(os.getpid())); time.sleep(60)")
    command = [sys.executable, "-m", "cresset.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    agent = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    deadline = time.monotonic() + 60
    while not all((tmp_path / r).exists() and (tmp_path / r).read_text() for r in "01") and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [int((tmp_path / r).read_text()) for r in "01"]
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(30) == 128 + signal.SIGTERM
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_batch_norm_over_all_processes_is_that_of_the_whole_batch(job):
    done = job(
        START
        + """
import copy
import cresset.nn as nn
torch.manual_seed(0)
whole = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).double()
part = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole)))
one, all_ = torch.optim.SGD(part.parameters(), 0.1), torch.optim.SGD(whole.parameters(), 0.1)
for step in range(5):
    x, y = torch.randn(6, 2, 4, 4, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    for net, optimizer, a, b in ((part, one, x[rank::size], y[rank::size]), (whole, all_, x, y)):
        optimizer.zero_grad()
        (net(a) - b).square().mean().backward()
        optimizer.step()
for (name, p), q in zip(part.module.state_dict().items(), whole.state_dict().values()):
    assert torch.allclose(p, q, rtol=1e-9, atol=1e-9), (name, p, q)
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_collectives_have_derivatives(job):
    done = job(
        START
        + """
from cresset.distributed.nn import functional as F
x = torch.full((2,), rank + 1.0, requires_grad=True)
(F.all_reduce(x) * (rank + 1)).sum().backward()
assert x.grad.tolist() == [3, 3]
x.grad = None
sum((part * (i + 1) * (rank + 1)).sum() for i, part in enumerate(F.all_gather(x))).backward()
assert x.grad.tolist() == [3.0 * (rank + 1)] * 2
x.grad = None
(F.broadcast(x, 1) * (rank + 1)).sum().backward()
assert x.grad.tolist() == ([3, 3] if rank == 1 else [0, 0])
x.grad = None
(F.reduce_scatter(torch.zeros(1), list(x.split(1))) * (rank + 1)).sum().backward()
assert x.grad.tolist() == [1, 2]
x.grad = None
(F.all_to_all_single(torch.zeros(2), x) * torch.tensor([1.0, 10.0]) * (rank + 1)).sum().backward()
assert x.grad.tolist() == [[1, 2], [10, 20]][rank]
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_an_interrupted_wait_leaves_its_memory_to_the_exchange(job):
    done = job(
        START
        + """
import os, signal, threading, time
if rank == 0:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        dist.all_reduce(torch.ones(3))
        raise SystemExit("the other has not come yet")
    except KeyboardInterrupt:
        pass
    others = [torch.ones(3) for _ in range(100)]  # would be in the memory of the first, were it free
    dist.all_reduce(torch.zeros(3), async_op=True)  # nobody waits for it either
else:
    time.sleep(1)
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2, 2]
    dist.all_reduce(x)
    assert x.tolist() == [2, 2, 2]
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [2, 2, 2]
assert rank or all(other.tolist() == [1, 1, 1] for other in others)
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_what_nobody_waits_for_comes_to_its_place_all_the_same(job):
    done = job(
        START
        + """
x = torch.full((3, 4), rank + 1.0).t()[::2]
dist.all_reduce(x, async_op=True)
dist.barrier()
dist.barrier()
assert x.tolist() == [[3.0] * 3] * 2, x
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_children_of_fork_know_their_rank_and_take_no_part(job):
    done = job(
        START
        + """
import os
from cresset.utils.data import DataLoader, Dataset, DistributedSampler

class Ranks(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor([i, dist.get_rank(), int(dist.is_initialized())])

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
data = Ranks()
for batch in DataLoader(data, batch_size=2, sampler=DistributedSampler(data), num_workers=2):
    assert batch[:, 1:].tolist() == [[rank, 1]] * 2
    model(batch.float()).sum().backward()
child = os.fork()
if child == 0:
    try:
        dist.all_reduce(torch.ones(2))
    except dist.DistBackendError as error:
        os._exit(0 if "a child of fork takes no part" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
if os.fork() == 0:
    raise SystemExit(0)  # and what Python does at the end of a process
os.wait()
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [2, 2, 2]
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_threads_exchange_in_groups_of_their_own(job):
    done = job(
        START
        + """
import threading
groups, sums = [dist.new_group() for _ in range(2)], [[], []]

def work(i, count):
    for step in range(100):
        x = torch.full((count,), float(step + i))
        dist.all_reduce(x, group=groups[i])
        sums[i].append((x[0].item(), x[-1].item()))

threads = [threading.Thread(target=work, args=pair) for pair in enumerate((5, 100_000))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sums == [[(2.0 * (step + i),) * 2 for step in range(100)] for i in range(2)]
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_every_dtype_every_shape(job):
    done = job(
        START
        + """
def moved(x):
    other = torch.zeros_like(x)
    places = [torch.zeros_like(x) for _ in range(size)]
    dist.all_gather(places, x)
    dist.broadcast(other if rank else x, 0)
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(other, 0)
    return places

names = "uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool float16 bfloat16 float32 float64"
names += " complex32 complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
for dtype in (getattr(torch, name) for name in names.split()):
    x = torch.tensor([1.0, 0.5, 2.0]).to(dtype)
    for place in moved(x):
        assert place.view(torch.uint8).tolist() == x.view(torch.uint8).tolist(), dtype
    try:
        dist.all_reduce(x)
        assert dtype.itemsize > 1 or not dtype.is_floating_point
    except RuntimeError as error:
        assert "cannot be reduced" in str(error) and (dtype.itemsize == 1 or dtype is torch.complex32), (dtype, error)
for shape in ((0,), (3, 0, 2)):
    x = torch.zeros(shape)
    dist.all_reduce(x)
    assert [place.shape for place in moved(x)] == [x.shape] * size
    every = torch.zeros(size * shape[0], *shape[1:])
    dist.all_gather_into_tensor(every, x)
    dist.reduce_scatter_tensor(x, every)
    dist.all_to_all_single(every, torch.zeros_like(every))
for x in (torch.ones([1] * 65), torch.ones(4, 6).t(), torch.ones(4, 6)[1:3, ::2], torch.tensor(1.0)):
    dist.all_reduce(x)
    assert x.flatten().tolist() == [size] * x.numel()
try:
    dist.all_reduce(torch.ones(1).expand(5))
    raise SystemExit("its elements are one")
except RuntimeError as error:
    assert "single memory location" in str(error)
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)
