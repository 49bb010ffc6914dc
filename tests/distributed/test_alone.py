"""A process that runs alone: everything imports, a group of one works."""

import importlib
import os
import subprocess
import sys

import pytest

import cresset
from cresset import distributed as dist
from cresset import nn
from cresset.nn.parallel import DistributedDataParallel


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_without_a_group_questions_are_errors():
    assert dist.is_available() and not dist.is_initialized()
    for ask in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(ValueError, match="not been initialized"):
        DistributedDataParallel(nn.Linear(1, 1))


def test_the_environment_must_say_where_to_meet(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")


def test_a_group_of_one_from_the_environment(monkeypatch):
    free = dist.TCPStore("127.0.0.1", 0, is_master=True)
    port = free.port
    free.close()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize("backend", ["gloo", "mpi", "GLOO", "cpu:gloo"])
def test_the_backend_is_what_was_asked_for(backend):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_backend() == backend.lower().rpartition(":")[2]
    dist.destroy_process_group()


def test_wrong_beginnings_are_errors(alone):
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo")
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="Unknown c10d backend"):
        dist.init_process_group("fast", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="rank must be non-negative"):
        dist.init_process_group(store=dist.HashStore())
    with pytest.raises(ValueError, match="both init_method and store"):
        dist.init_process_group(store=dist.HashStore(), init_method="env://", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for ftp://"):
        dist.init_process_group(init_method="ftp://x", rank=0, world_size=1)
    with pytest.raises(TypeError, match="timedelta"):
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1, timeout=5)


def test_collectives_of_one_give_what_they_get(alone):
    x = cresset.arange(6.0).view(2, 3)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.reduce(x, 0, dist.ReduceOp.AVG)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    out = [cresset.zeros(2, 3)]
    dist.all_gather(out, x)
    assert out[0].equal(x)
    flat = cresset.zeros(6)
    dist.all_gather_into_tensor(flat, x)
    assert flat.tolist() == [0, 1, 2, 3, 4, 5]
    part = cresset.zeros(2, 3)
    dist.reduce_scatter_tensor(part, x)
    dist.scatter(part, [x + 1], 0)
    assert part.equal(x + 1)
    dist.all_to_all_single(part, x)
    assert part.equal(x)
    objects = [None]
    dist.all_gather_object(objects, {"a": [1, "b"], "x": x})
    assert objects[0]["a"] == [1, "b"] and objects[0]["x"].equal(x)
    assert dist.all_reduce(x, async_op=True).wait()
    dist.barrier()


def test_premultiplied_sums_multiply_first(alone):
    x = cresset.ones(2)
    dist.all_reduce(x, dist._make_nccl_premul_sum(3.0))
    assert x.tolist() == [3, 3]


def test_strided_tensors_are_changed_in_place(alone):
    x = cresset.arange(6.0).view(2, 3)
    dist.scatter(x.t(), [cresset.ones(3, 2)], 0)
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_arguments_are_checked(alone):
    with pytest.raises(TypeError, match="`tensor` of type torch.Tensor"):
        dist.all_reduce([1])
    with pytest.raises(TypeError, match="op must be a ReduceOp"):
        dist.all_reduce(cresset.ones(1), "sum")
    with pytest.raises(RuntimeError, match="2 tensors for a group of 1"):
        dist.all_gather([cresset.ones(1)] * 2, cresset.ones(1))
    with pytest.raises(RuntimeError, match="BAND"):
        dist.all_reduce(cresset.ones(1), dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="complex"):
        dist.all_reduce(cresset.ones(1, dtype=cresset.complex64), dist.ReduceOp.MAX)
    with pytest.raises(ValueError, match="times the"):
        dist.all_gather_into_tensor(cresset.ones(3), cresset.ones(2))
    with pytest.raises(ValueError, match="nobody else|same as the rank"):
        dist.send(cresset.ones(1), 0)


def test_objects_that_are_not_data_are_refused(alone):
    class Secret:
        pass

    with pytest.raises(dist.DistError, match="Secret cannot be sent"):
        dist.all_gather_object([None], Secret())


def test_groups_of_a_group_of_one(alone):
    made = dist.new_group([0])
    assert dist.get_rank(made) == 0 and dist.get_process_group_ranks(made) == [0] and dist.get_global_rank(made, 0) == 0
    mine, every = dist.new_subgroups(1)
    assert every == [mine]
    with pytest.raises(ValueError, match="from 0 to 0"):
        dist.new_group([1])
    dist.destroy_process_group(made)
    with pytest.raises(ValueError, match="does not exist"):
        dist.barrier(made)


def test_a_model_of_one_process_has_its_own_gradients(alone):
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    x = cresset.randn(5, 4)
    model(x).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    wrapped = DistributedDataParallel(model)
    wrapped(x).sum().backward()
    assert all(p.grad.equal(g) for p, g in zip(model.parameters(), wanted, strict=True))
    assert list(wrapped.state_dict())[0] == "module.0.weight"


def test_parameters_without_a_part_in_the_loss_are_named(alone):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    wrapped = DistributedDataParallel(Two())
    wrapped(cresset.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match=r"finished reduction in the prior iteration.*idle.weight"):
        wrapped(cresset.ones(1, 2))
    wrapped = DistributedDataParallel(Two(), find_unused_parameters=True)
    for _ in range(2):
        wrapped(cresset.ones(1, 2)).sum().backward()
    assert wrapped.module.idle.weight.grad is None and wrapped.module.used.weight.grad is not None


def test_a_hook_may_exchange_the_gradients(alone):
    wrapped = DistributedDataParallel(nn.Linear(2, 2))
    seen = []

    def hook(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), [list(g.shape) for g in bucket.gradients()]))
        future = cresset.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future

    wrapped.register_comm_hook("state", hook)
    wrapped(cresset.ones(1, 2)).sum().backward()
    assert seen == [("state", 0, True, [[2], [2, 2]])]
    assert wrapped.module.weight.grad.tolist() == [[2, 2], [2, 2]]


def test_the_import_is_quick():
    """It takes a part of the time of the package itself: no engine, no sockets."""
    program = (
        "import time\ns = time.perf_counter(); import cresset; c = time.perf_counter() - s\n"
        "s = time.perf_counter(); import cresset.distributed; print((time.perf_counter() - s) / c)\n"
        "import sys; print(any(m.endswith(('mpi', 'urllib.parse', 'socket')) for m in sys.modules))"
    )
    shares, environment = [], {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # the first one may compile the files
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
        )
        share, opened = done.stdout.split()
        shares.append(float(share))
        assert opened == "False"
    assert min(shares) < 0.4, shares


def test_collectives_are_operators(alone):
    name, x = dist.group.WORLD.group_name, cresset.tensor([1.0, 2.0])
    functional = cresset.ops._c10d_functional
    assert functional.all_gather_into_tensor(x, 1, name).equal(x)
    assert functional.all_reduce(x, "sum", name).equal(x)
    assert functional.reduce_scatter_tensor.default(x, "sum", 1, name).equal(x)
    assert functional.all_to_all_single(x, [2], [2], name).equal(x)
    assert functional.broadcast(x, 0, name).equal(x)
    assert functional.wait_tensor(x) is x
    assert cresset.ops.c10d_functional.all_gather_into_tensor(x, "", [0], 1).equal(x)
    with pytest.raises(ValueError, match="ranks"):
        cresset.ops.c10d_functional.all_gather_into_tensor(x, "", [0, 1], 2)


def test_a_program_says_how_its_operator_runs_on_distributed_tensors(alone):
    from cresset.distributed.tensor import Replicate, Shard, distribute_tensor
    from cresset.distributed.tensor.experimental import register_sharding

    @cresset.library.custom_op("tests_alone::tripled_rows", mutates_args=())
    def tripled_rows(x: cresset.Tensor, times: int) -> cresset.Tensor:
        return x * times

    @tripled_rows.register_fake
    def _(x, times):
        return cresset.empty_like(x)

    seen = []

    @register_sharding(cresset.ops.tests_alone.tripled_rows.default)
    def ways(x, times):
        seen.append((x.ndim, times))
        return [([Replicate()], [Replicate(), None]), ([Shard(0)], [Shard(0), None])]

    mesh = dist.init_device_mesh("cpu", (1,))
    made = cresset.ops.tests_alone.tripled_rows(distribute_tensor(cresset.ones(2, 2), mesh, [Shard(0)]), 3)
    assert made.placements == (Shard(0),)
    assert made.to_local().tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert seen == [(2, 3)]


@pytest.mark.parametrize("module", ["distributed.tensor", "distributed._tensor"])
def test_the_mesh_and_the_tensors_are_found_where_older_programs_look(module):
    mesh = importlib.import_module(f"cresset.{module}.device_mesh")
    assert mesh.init_device_mesh is cresset.distributed.device_mesh.init_device_mesh
    if module.endswith("_tensor"):
        api = importlib.import_module(f"cresset.{module}.api")
        assert api.distribute_tensor is cresset.distributed.tensor.distribute_tensor


def test_an_optimizer_without_state_gives_its_settings_while_gradients_are_there():
    from cresset.distributed.checkpoint.state_dict import get_optimizer_state_dict

    model = nn.Linear(2, 1)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.5)
    model(cresset.ones(1, 2)).sum().backward()
    optimizer.step()
    saved = get_optimizer_state_dict(model, optimizer)
    assert saved["state"] == {} and saved["param_groups"][0]["lr"] == 0.5
    assert model.weight.grad.tolist() == [[1.0, 1.0]]


def test_an_optimizer_is_begun_without_a_change_of_its_parameters():
    from cresset.distributed.checkpoint.state_dict import _init_optim_state

    model = nn.Linear(2, 1)
    before = model.weight.tolist()
    optimizer = cresset.optim.AdamW(model.parameters(), lr=0.5)
    _init_optim_state(optimizer)
    assert optimizer.state[model.weight]["exp_avg"].shape == (1, 2) and model.weight.tolist() == before
    assert optimizer.param_groups[0]["lr"] == 0.5 and model.weight.grad is None
