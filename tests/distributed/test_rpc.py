"""Functions in other processes: by name, with data, and what is said when that cannot be."""

import pytest

import cresset
from cresset import distributed as dist
from cresset.distributed import rpc


def test_functions_values_and_references_in_other_processes(job):
    done = job(
        """
import os, time
import cresset.nn as nn
import cresset.distributed.rpc as rpc

class Counter:
    def __init__(self, start):
        self.value = start
    def add(self, n):
        self.value += n
        return self.value
    def tensor(self):
        return torch.full((2,), float(self.value))

def add(a, b=1):
    return {"sum": a + b, "who": rpc.get_worker_info().name}

def fail(n):
    raise KeyError(f"no {n}")

def slow():
    time.sleep(3)

def nested(to):
    return rpc.rpc_sync(to, add, args=(1,))["who"]

def total(counter):
    return counter.rpc_sync().add(100)

@rpc.functions.async_execution
def later(to):
    return rpc.rpc_async(to, add, args=(5,)).then(lambda f: f.wait()["sum"] * 2)

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=20))
me, other = f"worker{rank}", f"worker{(rank + 1) % size}"
assert rpc.get_worker_info() == (rank, me) and rpc.get_worker_info(other).id == (rank + 1) % size
got = rpc.rpc_sync(other, add, args=(torch.arange(3),), kwargs={"b": 2})
assert got["sum"].tolist() == [2, 3, 4] and got["who"] == other
assert rpc.rpc_sync(other, torch.add, args=(torch.ones(2), 1)).tolist() == [2, 2]
assert rpc.rpc_async(rank, max, args=([3, 7],)).wait() == 7
futures = [rpc.rpc_async(other, add, args=(i,)) for i in range(50)]
assert [f.wait()["sum"] for f in futures] == list(range(1, 51))
assert rpc.rpc_sync(other, nested, args=(me,)) == me
assert rpc.rpc_sync(other, later, args=(me,)) == 12

reference = rpc.remote(other, Counter, args=(10 * rank,))
assert reference.owner_name() == other and not reference.is_owner() and reference.owner().name == other
assert reference.rpc_sync().add(1) == 10 * rank + 1 and reference.rpc_async().add(1).wait() == 10 * rank + 2
assert reference.remote().tensor().to_here().tolist() == [10.0 * rank + 2] * 2
assert rpc.rpc_sync(other, total, args=(reference,)) == 10 * rank + 102  # a reference travels
mine = rpc.RRef(torch.ones(2))
assert mine.is_owner() and mine.local_value().tolist() == [1, 1] and rpc.rpc_sync(other, torch.numel, args=(torch.ones(3),)) == 3
layer = rpc.remote(other, nn.Linear, args=(2, 3))
assert layer.rpc_sync().forward(torch.ones(1, 2)).shape == (1, 3)

def refused(call, kind, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)

refused(lambda: rpc.rpc_sync(other, fail, args=(3,)), KeyError, f"On WorkerInfo(id={(rank + 1) % size}")
refused(lambda: rpc.rpc_sync(other, slow, timeout=0.3), RuntimeError, "RPC ran for more than set timeout (300 ms)")
refused(lambda: rpc.rpc_sync(other, lambda: 1), ValueError, "cannot be called in another process")
refused(lambda: rpc.rpc_sync(other, os.system, args=("true",)), ValueError, "posix:system is not called for other processes")
refused(lambda: rpc.rpc_sync(other, add, args=(Counter(1),)), dist.DistError, "data only")
refused(lambda: rpc.rpc_sync("nobody", add), ValueError, "unknown destination worker nobody")
refused(lambda: reference.local_value(), RuntimeError, "non-local reference")
refused(lambda: layer.to_here(), RuntimeError, "data only")
assert rpc.api._all_gather(rank) == {f"worker{r}": r for r in range(size)}
rpc.shutdown()
refused(lambda: rpc.get_worker_info(), RuntimeError, "init_rpc first")
rpc.init_rpc(f"again{rank}")
assert rpc.rpc_sync(f"again{(rank + 1) % size}", add, args=(1,))["sum"] == 2
rpc.shutdown()
print("good")
"""  # noqa: E501
    )
    assert done.status == 0 and done.out.count("good") == 2, (done.out, done.err)


def test_a_stranger_without_the_secret_is_not_heard():
    import socket

    from cresset.distributed.rpc import agent, options
    from cresset.distributed.store import wire

    store = dist.HashStore()
    one = agent.Agent(store, "one", 0, 1, options.TensorPipeRpcBackendOptions())
    try:
        with socket.create_connection(one.addresses["one"], 5) as stranger:
            stranger.sendall(wire.pack([b"guess"]) + wire.pack([b"call", b"0", b"math:sqrt", b""]))
            stranger.settimeout(5)
            assert stranger.recv(100) == b""
    finally:
        one.close()


def test_gradients_through_calls_are_refused_in_words():
    for ask in (dist.autograd.context, lambda: dist.autograd.get_gradients(1), lambda: dist.autograd.backward(1, [])):
        with pytest.raises(NotImplementedError, match="gradients do not travel through rpc"):
            ask()
    with pytest.raises(NotImplementedError, match=r"needs torch\.distributed\.autograd"):
        dist.optim.DistributedOptimizer(cresset.optim.SGD, [], lr=0.1)


def test_without_workers_rpc_says_what_is_missing():
    with pytest.raises(RuntimeError, match="init_rpc first"):
        rpc.rpc_sync("worker", cresset.add)
    with pytest.raises(ValueError, match="device_maps"):
        rpc.TensorPipeRpcBackendOptions(device_maps={"worker": {0: 0}})


def test_a_function_that_needs_rpc_refuses_before_it_is_there():
    @rpc.api._require_initialized
    def gather():
        raise AssertionError("called")

    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        gather()
