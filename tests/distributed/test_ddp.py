"""DistributedDataParallel's hooks, joining, mixed precision and optimizers over processes, beside one process."""

START = """
import copy, datetime
import cresset.nn as nn
from cresset.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank, size = dist.get_rank(), dist.get_world_size()

def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))

torch.manual_seed(100)
DATA, WANTED = torch.randn(8, 12, 8), torch.randn(8, 12, 4)  # eight steps

def train(model, optimizer, steps=8, all_data=False):
    for x, y in list(zip(DATA, WANTED))[:steps]:
        if not all_data:
            x, y = x[rank::size], y[rank::size]
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if optimizer is not None:
            optimizer.step()

def single(kind=torch.optim.SGD, steps=8, **settings):
    model = net()
    train(model, kind(model.parameters(), **settings), steps, True)
    return model

def distance(a, b):
    return max((p.detach().float() - q.detach().float()).abs().max().item() for p, q in zip(a.parameters(), b.parameters()))
"""  # noqa: E501


def done_well(done, processes=2):
    assert done.status == 0 and done.out.count("good") == processes, (done.out, done.err)


def test_hooks_exchange_gradients_each_in_its_way(job):
    done_well(
        job(
            START
            + """
from cresset.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, powerSGD_hook, post_localSGD_hook, register_ddp_comm_hook
exact = single(lr=0.1)

def trained(register, **ddp):
    model = DDP(net(), bucket_cap_mb=0.001, **ddp)
    register(model)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    return model

group = dist.group.WORLD
for view in (False, True):
    assert distance(trained(lambda m: m.register_comm_hook(group, default_hooks.allreduce_hook), gradient_as_bucket_view=view), exact) < 1e-6
by_name = {"ALLREDUCE": 1e-6, "FP16_COMPRESS": 2e-3, "BF16_COMPRESS": 1e-2, "QUANTIZE_PER_TENSOR": 1e-2, "QUANTIZE_PER_CHANNEL": 1e-2, "POWER_SGD": 1e-6}
for name, limit in by_name.items():
    far = distance(trained(lambda m: register_ddp_comm_hook(DDPCommHookType[name], m, group)), exact)
    assert far < limit and (limit < 1e-5 or far > 0), (name, far)
far = distance(trained(lambda m: m.register_comm_hook(None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))), exact)
assert 0 < far < 2e-3
for builtin, limit in ((dist.BuiltinCommHookType.ALLREDUCE, 1e-6), (dist.BuiltinCommHookType.FP16_COMPRESS, 2e-3)):
    assert distance(trained(lambda m: m._register_builtin_comm_hook(builtin)), exact) < limit
# PowerSGD: with as many columns as a matrix has it is exact; with one it is near, and all stay alike
for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
    for batch in (False, True):
        full = powerSGD_hook.PowerSGDState(group, 64, 2, 0, batch_tensors_with_same_shape=batch, orthogonalization_epsilon=1e-8)
        one = powerSGD_hook.PowerSGDState(group, 1, 2, batch_tensors_with_same_shape=batch, orthogonalization_epsilon=1e-8)
        if hook is powerSGD_hook.powerSGD_hook:
            assert distance(trained(lambda m: m.register_comm_hook(full, hook)), exact) < 1e-5
        near = trained(lambda m: m.register_comm_hook(one, hook))
        assert 1e-5 < distance(near, exact) < 0.1 and one.compression_stats()[0] > 1.5 and one.iter == 8
        first = torch.cat([p.detach().reshape(-1) for p in near.parameters()])
        both = [torch.zeros_like(first) for _ in range(size)]
        dist.all_gather(both, first)
        assert both[0].equal(both[1])
alone = trained(lambda m: register_ddp_comm_hook(DDPCommHookType.NOOP, m))
mine = alone.module[0].weight.detach().clone()
dist.all_reduce(mine, dist.ReduceOp.MAX)
assert not mine.equal(alone.module[0].weight)
# gradients of neighbors after two steps, models averaged: each process is its own neighbor here
from cresset.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from cresset.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
state = post_localSGD_hook.PostLocalSGDState(None, dist.new_subgroups(1)[0], 2)
model = DDP(net())
model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
optimizer = dist.optim.PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(2, 1))
train(model, optimizer)
assert optimizer.state_dict()["step"] == 8 and state.iter == 2
assert distance(model, exact) < 1e-2  # the last average was at step 7
averager = HierarchicalModelAverager({1: 1, 2: 2})
for p in model.parameters():
    p.data.fill_(rank)
averager.average_parameters(model.parameters())
assert all(p.eq(0.5).all() for p in model.parameters())
try:
    model.register_comm_hook(None, default_hooks.allreduce_hook)
except RuntimeError as error:
    assert "only be called once" in str(error)
    print("good")
"""  # noqa: E501
        )
    )


def test_loops_of_different_lengths_join(job):
    done_well(
        job(
            START
            + """
from cresset.distributed.algorithms.join import Join, Joinable
def batches():
    return [torch.full((2, 8), 1.0 + i + rank) for i in range(2 + 2 * rank)]

def wide():  # gradients that travel by themselves
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 5000), nn.Linear(5000, 4))

for by_all in (True, False):
    for make, options in ((net, {}), (net, {"find_unused_parameters": True}), (wide, {})):
        model, alone = DDP(make(), bucket_cap_mb=0.001, **options), make()
        assert isinstance(model, Joinable)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        other = torch.optim.SGD(alone.parameters(), lr=0.01)
        with model.join(divide_by_initial_world_size=by_all):
            for x in batches():
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        for i in range(4):  # what it means: an average over two, then of one with nothing, or of one
            other.zero_grad()
            parts = [alone(torch.full((2, 8), 1.0 + i + r)).square().mean() for r in (0, 1) if i < 2 + 2 * r]
            (sum(parts) / (2 if by_all or len(parts) == 2 else 1)).backward()
            other.step()
        assert distance(model, alone) < 2e-5, (by_all, options, distance(model, alone))

# buffers, no_sync, an optimizer over the processes
model = DDP(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)))
zero = dist.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
with Join([model, zero]):
    for i, x in enumerate(batches()):
        if i == 0:
            with model.no_sync():
                model(x).sum().backward()
            continue
        model(x + torch.randn(2, 8)).square().sum().backward()
        zero.step()
        zero.zero_grad()
flat = torch.cat([t.detach().reshape(-1).float() for t in model.state_dict().values()])
both = [torch.zeros_like(flat) for _ in range(size)]
dist.all_gather(both, flat)
assert both[0].equal(both[1])

seen = 0
try:
    with model.join(throw_on_early_termination=True):
        for x in batches():
            model(x).sum().backward()
            seen += 1
except RuntimeError as error:
    wanted = "Rank 0 exhausted all inputs" if rank == 0 else "at least one rank that exhausted inputs"
    assert wanted in str(error), error
assert seen == 2
with model.join(enable=False):
    model(batches()[0]).sum().backward()
print("good")
"""
        )
    )


def test_parameters_that_are_unused_delayed_ignored_or_of_another_dtype(job):
    done_well(
        job(
            START
            + """
from cresset.nn.parallel.distributed import _MixedPrecision
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
    def forward(self, x, both=False):
        return self.a(x) + (self.b(x) if both else 0)

model = DDP(Two())
model(torch.ones(1, 2)).sum().backward()
try:
    model(torch.ones(1, 2))
except RuntimeError as error:
    assert "b.bias, b.weight" in str(error) and "find_unused_parameters=True" in str(error)
for options in ({}, {"skip_all_reduce_unused_params": True, "bucket_cap_mb": 1e-6}):
    model = DDP(Two(), find_unused_parameters=True, **options)
    model(torch.full((1, 2), rank + 1.0)).sum().backward()
    assert model.module.b.weight.grad is None and model.module.a.weight.grad.tolist() == [[1.5, 1.5]] * 2
    if not options:
        model(torch.ones(1, 2), both=rank == 0).sum().backward()  # used in one process only
        assert model.module.b.bias.grad.tolist() == [0.5, 0.5]
DDP._set_params_and_buffers_to_ignore_for_model(two := Two(), ["b.weight", "b.bias"])
model = DDP(two)
model(torch.full((1, 2), rank + 1.0), True).sum().backward()
assert two.a.weight.grad[0, 0] == 1.5 and two.b.weight.grad[0, 0] == rank + 1

two = Two()
model = DDP(two, delay_all_reduce_named_params=[("b.weight", two.b.weight), ("b.bias", two.b.bias)], param_to_hook_all_reduce=two.a.weight)
model(torch.full((1, 2), rank + 1.0), True).sum().backward()
assert two.a.weight.grad[0, 0] == 1.5 and two.b.weight.grad.tolist() == [[1.5, 1.5]] * 2 and two.b.bias.grad.tolist() == [1, 1]

for dtype in (torch.complex64, torch.complex128, torch.float16):
    model = DDP(nn.Linear(2, 2, bias=False, dtype=dtype))
    model(torch.full((1, 2), rank + 1.0, dtype=dtype)).sum().abs().backward()
    alone = nn.Linear(2, 2, bias=False, dtype=dtype)
    alone.load_state_dict(model.module.state_dict())
    (sum(alone(torch.full((1, 2), r + 1.0, dtype=dtype)).sum().abs() for r in range(size)) / size).backward()
    assert torch.allclose(model.module.weight.grad, alone.weight.grad, atol=2e-3), dtype

model = DDP(net(), mixed_precision=_MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16), bucket_cap_mb_list=[0.0005, 0.002])
x = DATA[0][rank::size]
out = model(x)
assert out.dtype == torch.bfloat16 and all(p.dtype == torch.float32 for p in model.parameters())
out.float().square().mean().backward()
plain = net()
plain(DATA[0]).square().mean().backward()
for p, q in zip(model.parameters(), plain.parameters()):
    assert p.grad.dtype == torch.float32 and torch.allclose(p.grad, q.grad, atol=0.02), (p.grad - q.grad).abs().max()
train(model, None, 2)
data = model._get_ddp_logging_data()
assert data["has_rebuilt_buckets"] == 1 and data["iteration"] == 3 and data["num_parameter_tensors"] == 6 and data["num_buckets_reduced"] == 2
assert data["world_size"] == 2 and data["module_name"] == "Sequential" and data["dtypes"] == "float32"
print("good")
"""  # noqa: E501
        )
    )


def test_optimizers_over_processes_are_those_of_one(job):
    done_well(
        job(
            START
            + """
import io
from cresset.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
from cresset.distributed.algorithms._optimizer_overlap import _as_overlapped_optim
from cresset.distributed.optim import ZeroRedundancyOptimizer, _apply_optimizer_in_backward
exact = single(torch.optim.Adam, lr=0.01)
for view in (False, True):
    model = DDP(net())
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, parameters_as_bucket_view=view, lr=0.01)
    train(model, zero, 4)
    held = sum(t.numel() for s in zero.optim.state.values() for t in s.values())
    assert held < 0.7 * 2 * sum(p.numel() for p in model.parameters())
    zero.consolidate_state_dict(to=1)
    saved = [zero.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(saved, 1)
    again = DDP(net(1))
    again.load_state_dict(model.state_dict())
    other = ZeroRedundancyOptimizer(again.parameters(), torch.optim.Adam, lr=0.5)
    other.load_state_dict(saved[0])
    assert other.param_groups[0]["lr"] == 0.01
    plain = net()
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    train(plain, optimizer, 4, True)
    assert sorted(saved[0]["state"]) == sorted(optimizer.state_dict()["state"])
    assert torch.allclose(saved[0]["state"][2]["exp_avg"], optimizer.state_dict()["state"][2]["exp_avg"], atol=1e-6)
    for which, step in ((model, zero), (again, other)):
        for x, y in list(zip(DATA, WANTED))[4:]:
            which.zero_grad()
            nn.functional.mse_loss(which(x[rank::size]), y[rank::size]).backward()
            step.step()
        assert distance(which, exact) < 1e-5
try:
    ZeroRedundancyOptimizer(net().parameters(), torch.optim.SGD, lr=0.1).state_dict()
except RuntimeError as error:
    assert "consolidate_state_dict(to=" in str(error)

for wrap in (ddp_zero_hook.hook_with_zero_step, ddp_zero_hook.hook_with_zero_step_interleaved):
    model = DDP(net(), bucket_cap_mb=0.001)
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, overlap_with_ddp=True, lr=0.01)
    model.register_comm_hook(None, wrap(default_hooks.allreduce_hook, model, zero))
    train(model, None)
    assert distance(model, exact) < 1e-5, distance(model, exact)

model = DDP(net(), bucket_cap_mb=0.001)
_as_overlapped_optim(torch.optim.Adam, None, lr=0.01).register_ddp(model)
train(model, None)
assert distance(model, exact) < 1e-5

inner = net()
_apply_optimizer_in_backward(torch.optim.Adam, inner.parameters(), {"lr": 0.01})
model = DDP(inner)
train(model, None)
assert distance(model, exact) < 1e-5 and inner[0].weight.grad is None
print("good")
"""
        )
    )


def test_collectives_that_give_new_tensors(job):
    done_well(
        job(
            START
            + """
import cresset.distributed._functional_collectives as F
from cresset.distributed import distributed_c10d, utils
group = dist.group.WORLD
x = torch.arange(4.0).view(2, 2) + rank
assert F.all_reduce(x, "sum", group).tolist() == [[1, 3], [5, 7]] and F.all_reduce(x, "avg", group.group_name)[0, 0] == 0.5
assert F.all_gather_tensor(x, 1, group).tolist() == [[0, 1, 1, 2], [2, 3, 3, 4]]
assert F.reduce_scatter_tensor(x, "sum", 1, group).tolist() == [[[1], [5]], [[3], [7]]][rank]
assert F.broadcast(x, 1, group)[0, 0] == 1 and F.permute_tensor(x, [1, 0], group)[0] == 1 - rank
assert F.all_to_all_single(x, None, None, group).tolist() == [[[0, 1], [1, 2]], [[2, 3], [3, 4]]][rank]
assert distributed_c10d._resolve_process_group(group.group_name) is group is distributed_c10d._get_default_group()
assert group in distributed_c10d._pg_map and not isinstance(x, F.AsyncCollectiveTensor)
model = net(rank)
utils._sync_module_states(model, group, 1000, 0, ["4.bias"])
assert model[0].weight.equal(net(0)[0].weight) and model[4].bias.equal(net(rank)[4].bias)
print("good")
"""  # noqa: E501
        )
    )


def test_gradients_of_all_sizes_are_averaged_where_they_lie(job):
    done_well(
        job(
            START
            + """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        sizes = [0, 1, 3, 0, 5000, 1, 40000, 7, 0, 129]
        self.parts = nn.ParameterList([nn.Parameter(torch.randn(n)) for n in sizes])
        self.turned = nn.Parameter(torch.randn(30, 50))
        self.many = nn.ParameterList([nn.Parameter(torch.randn(1 + i % 5)) for i in range(300)])
    def forward(self, x):
        # the gradient of the first sum is expanded, that of `turned` transposed
        return x * (sum((p * p).sum() for p in self.parts) + sum(p.sum() for p in self.many)) + (self.turned.t() @ torch.ones(30, 1) * x).sum()

for settings in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.01}):
    plain, model = Odd(), DDP(Odd(), **settings)
    for step in range(3):
        plain.zero_grad(), model.zero_grad()
        plain(torch.tensor((size + 1) / 2 + step)).backward()
        model(torch.tensor(rank + 1.0 + step)).backward()
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(q.grad, p.grad)
            assert q.grad.shape == q.shape
print("good")
"""  # noqa: E501
        )
    )
