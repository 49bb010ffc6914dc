"""State of models that are cut in any way: by plain names, whole or distributed, saved and loaded by any number of
processes.
"""

START = """
import copy, os
import cresset.distributed.checkpoint as dcp
import cresset.nn as nn
from cresset.distributed.checkpoint.state_dict import *
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.fsdp import *
from cresset.distributed.tensor import *
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.BatchNorm1d(3))

def train(model, optimizer, steps=3):
    for step in range(steps):
        optimizer.zero_grad()
        torch.manual_seed(step)
        model(torch.randn(6, 5)).square().mean().backward()
        optimizer.step()

def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value
"""

RESHARD = (
    START
    + """
folder = os.environ["FOLDER"]
alone = net()
plain = torch.optim.AdamW(alone.parameters(), 0.01)
train(alone, plain)
model = fully_shard(net())
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
grid = init_device_mesh("cpu", (2, 2)) if size == 4 else None
extra = torch.arange(35.0).view(5, 7)
placed = distribute_tensor(extra, *((grid, [Shard(0), Shard(1)]) if grid else (init_device_mesh("cpu", (size,)), [Shard(1)])))
if STAGE == 0:
    train(model, optimizer)
    state = {"extra": placed, "count": 3}
else:
    state = {"extra": placed.detach().clone().zero_(), "count": 0}
model_state, optimizer_state = get_state_dict(model, optimizer)
state["model"], state["optimizer"] = model_state, optimizer_state
if STAGE:
    dcp.load(state, checkpoint_id=f"{folder}/{STAGE - 1}")
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert state["count"] == 3
assert state["extra"].full_tensor().equal(extra)
dcp.save(state, checkpoint_id=f"{folder}/{STAGE}")
bits = {k: whole(v) for k, v in get_model_state_dict(model).items()}
bits |= {f"{n}.{k}": whole(v) for n, kept in get_optimizer_state_dict(model, optimizer)["state"].items()
         for k, v in kept.items()}
if rank == 0:
    torch.save(bits, f"{folder}/bits{STAGE}.pt")
    first = torch.load(f"{folder}/bits0.pt")
    assert list(first) == list(bits) and all(first[k].equal(v) for k, v in bits.items())
    assert set(alone.state_dict()) < set(bits)
print("good")
"""  # noqa: E501
)


def test_four_processes_save_two_load_and_save_three_load(job):
    for stage, processes in enumerate((4, 2, 3)):
        done = job(f"STAGE = {stage}\n" + RESHARD, processes)
        assert done.status == 0 and done.out.count("good") == processes, (stage, done.err)


def test_state_by_plain_names(job):
    done = job(
        START
        + """
alone = net()
plain = torch.optim.AdamW([{"params": [p for p in alone.parameters()], "lr": 0.02}])
train(alone, plain)
names = list(alone.state_dict())

def models():
    yield net()
    yield nn.parallel.DistributedDataParallel(net())
    yield fully_shard(net())
    yield FullyShardedDataParallel(net())

for model in models():
    optimizer = torch.optim.AdamW(model.parameters(), 0.02)
    got = set_model_state_dict(model, alone.state_dict(), options=StateDictOptions(full_state_dict=True))
    assert got.missing_keys == [] and got.unexpected_keys == []
    state = get_model_state_dict(model)
    assert list(state) == names and all(whole(v).equal(alone.state_dict()[k]) for k, v in state.items())
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert (list(full) == names and not any(isinstance(v, DTensor) for v in full.values())) if rank == 0 else full == {}
    given = get_optimizer_state_dict(alone, plain)
    assert given["param_groups"][0]["params"][0] == "0.weight" and set(given["state"]["0.weight"]) == {
        "step", "exp_avg", "exp_avg_sq"}
    set_optimizer_state_dict(model, optimizer, given, options=StateDictOptions(full_state_dict=True))
    found = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
    assert whole(found["state.0.weight.exp_avg"]).equal(plain.state[alone[0].weight]["exp_avg"])
    assert found["param_groups.0.weight.lr"] == 0.02
    only = get_model_state_dict(model, submodules={list(model.modules())[-1]})
    assert {name.split(".")[0] for name in only} == {"3"}
# what only the first process has
model = fully_shard(net())
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
set_model_state_dict(model, alone.state_dict() if rank == 0 else {}, options=options)
assert all(whole(v).equal(alone.state_dict()[k]) for k, v in get_model_state_dict(model).items())
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_the_first_kind_of_fsdp(job):
    done = job(
        START
        + """
import functools
from cresset.distributed.fsdp import wrap
FSDP = FullyShardedDataParallel
alone = net().eval()
model = FSDP(net().eval(), auto_wrap_policy=functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=30))
assert isinstance(model.module[0], FSDP) and len(FSDP.fsdp_modules(model)) == 2
assert FSDP.fsdp_modules(model, root_only=True) == [model]
x = torch.randn(6, 5)
both = [torch.empty(6, 5) for _ in range(size)]
dist.all_gather(both, x)
x = both[0]
optimizer = torch.optim.Adam(model.parameters(), 0.01)
plain = torch.optim.Adam(alone.parameters(), 0.01)
for step in range(3):
    for net_, optimizer_, data in ((model, optimizer, x.chunk(size)[rank]), (alone, plain, x)):
        optimizer_.zero_grad()
        if net_ is model and step == 1:
            with model.no_sync():
                (model(data).sum() * 0).backward()
                assert all(p.grad is None for p in model.parameters())
        net_(data).square().mean().backward()
        norm = net_.clip_grad_norm_(0.5) if net_ is model else nn.utils.clip_grad_norm_(net_.parameters(), 0.5)
        optimizer_.step()
        if net_ is model:
            kept = norm
    assert torch.allclose(kept, norm, rtol=1e-5)
expected = alone.state_dict()
found = model.state_dict()
assert list(found) == list(expected)
assert all(torch.allclose(found[k], v, atol=1e-6) for k, v in expected.items())
with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
    assert isinstance(model.state_dict()["0.weight"], DTensor)
    model.load_state_dict(model.state_dict())
with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
    assert model.state_dict()["0.weight"].numel() in (20, 15)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
    assert ("0.weight" in model.state_dict()) == (rank == 0)
with FSDP.summon_full_params(model):
    assert dict(model.named_parameters())["0.weight"].shape == (7, 5)
    with torch.no_grad():
        model.module[0].module.weight.fill_(2.0)
assert model.state_dict()["0.weight"].eq(2).all()
model.load_state_dict(expected)
assert model.state_dict()["0.weight"].equal(expected["0.weight"])
state = FSDP.optim_state_dict(model, optimizer)
assert torch.allclose(state["state"]["0.weight"]["exp_avg"], plain.state[alone[0].weight]["exp_avg"], atol=1e-7)
again = torch.optim.Adam(model.parameters(), 0.01)
again.load_state_dict(FSDP.optim_state_dict_to_load(model, again, state))
assert again.state[model.module[0].weight]["exp_avg"].full_tensor().equal(state["state"]["0.weight"]["exp_avg"])
for strategy in (ShardingStrategy.NO_SHARD, ShardingStrategy.SHARD_GRAD_OP):
    other = FSDP(net().eval(), sharding_strategy=strategy, sync_module_states=True,
                 mixed_precision=MixedPrecision(torch.bfloat16), forward_prefetch=True)
    other(x).float().sum().backward()
    assert all(p.grad is not None for p in other.parameters())
with wrap.enable_wrap(wrapper_cls=FSDP):
    assert isinstance(wrap.wrap(nn.Linear(2, 2)), FSDP)
assert isinstance(wrap.wrap(nn.Linear(2, 2)), nn.Linear)
policy = wrap.CustomPolicy(lambda m: isinstance(m, nn.Linear) and {"forward_prefetch": True})
assert FSDP(net(), auto_wrap_policy=policy).module[2].forward_prefetch
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err
