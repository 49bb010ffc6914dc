"""DDP, FSDP, tensor parallelism and their combinations follow the loss of one process; the parts hold a part of its
memory."""

import pytest

MODELS = """
import copy
import cresset.nn as nn
import cresset.nn.functional as F
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.fsdp import *
from cresset.distributed.fsdp.wrap import ModuleWrapPolicy
from cresset.distributed.tensor import *
from cresset.distributed.tensor.parallel import *
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.query, self.key = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out, self.heads = nn.Linear(width, width), nn.Linear(width, width), width // heads
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(batch, length, -1, self.heads).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, -1)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))

class GPT(nn.Module):
    def __init__(self, words=32, width=16):
        super().__init__()
        self.embedding, self.blocks = nn.Embedding(words, width), nn.ModuleList(Block(width, 4) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

def mlp():
    return nn.Sequential(nn.Linear(10, 33), nn.ReLU(), nn.Linear(33, 7), nn.ReLU(), nn.Linear(7, 3))

def cnn():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(128, 5))

def batch(make, step):
    g = torch.Generator().manual_seed(step)
    if make is GPT:
        words = torch.randint(0, 32, (8, 9), generator=g)
        return words[:, :-1], words[:, 1:]
    shape, classes = ((8, 10), 3) if make is mlp else ((8, 3, 8, 8), 5)
    return torch.randn(shape, generator=g), torch.randint(0, classes, (8,), generator=g)

def losses(model, make, part, parts):
    optimizer, found = torch.optim.AdamW(model.parameters(), 1e-2), []
    for step in range(20):
        x, y = (t.chunk(parts)[part] for t in batch(make, step))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        value = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(value, dist.ReduceOp.AVG)
        found.append(value.item())
    return found, optimizer

def same(found, expected):
    assert max(abs(a - b) / abs(a) for a, b in zip(expected, found, strict=True)) < 1e-6, (found, expected)

def bytes_of(model, optimizer):
    tensors = [t for p in model.parameters() for t in (p, p.grad, *optimizer.state[p].values()) if t is not None]
    return sum(t.to_local().nbytes if isinstance(t, DTensor) else t.nbytes for t in tensors)
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_losses_are_those_of_one_process(job, processes):
    done = job(
        MODELS
        + """
meshes = [None] if size == 2 else [None, init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))]
for make in (mlp, cnn, GPT):
    torch.manual_seed(3)
    alone = make()
    start = copy.deepcopy(alone)
    if make is cnn:
        start = nn.SyncBatchNorm.convert_sync_batchnorm(start)
    expected, plain = losses(alone, make, 0, 1)
    for view in (False, True):
        model = nn.parallel.DistributedDataParallel(copy.deepcopy(start), gradient_as_bucket_view=view)
        same(losses(model, make, rank, size)[0], expected)
    for mesh in meshes:
        model = copy.deepcopy(start)
        for part in [*model.blocks] if make is GPT else [model[0], model[-1]]:
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
        found, optimizer = losses(model, make, rank, size)
        same(found, expected)
        assert type(model).__name__ == "FSDP" + type(start).__name__ and isinstance(model, FSDPModule)
        assert all(isinstance(p, DTensor) for p in model.parameters())
        assert all(isinstance(v, DTensor) for k, v in model.state_dict().items() if "running" not in k and "num" not in k)
        if mesh is None and make is GPT:
            share = bytes_of(model, optimizer) / bytes_of(alone, plain)
            assert share <= {2: 0.52, 4: 0.27}[size], share
        if make is not cnn:
            model = copy.deepcopy(start)
            policy = ModuleWrapPolicy({Block, nn.Linear})
            hybrid = ShardingStrategy.HYBRID_SHARD if mesh is not None else None
            model = FullyShardedDataParallel(model, auto_wrap_policy=policy, device_mesh=mesh, sharding_strategy=hybrid)
            same(losses(model, make, rank, size)[0], expected)
            whole = model.state_dict()
            assert list(whole) == list(start.state_dict()) and type(whole[next(iter(whole))]) is torch.Tensor
print("good")
""",  # noqa: E501
        processes,
        seconds=300,
    )
    assert done.status == 0 and done.out.count("good") == processes, done.err


TENSOR_PARALLEL = """
plan = {"embedding": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())}
for i in range(2):
    for name in ("query", "key", "value", "up"):
        plan[f"blocks.{i}.{name}"] = ColwiseParallel()
    for name in ("out", "down"):
        plan[f"blocks.{i}.{name}"] = RowwiseParallel()
"""


def test_tensor_parallelism_on_two_follows_the_loss_of_one(job):
    done = job(
        MODELS
        + TENSOR_PARALLEL
        + """
mesh = init_device_mesh("cpu", (2,))
plans = {
    mlp: {"0": ColwiseParallel(use_local_output=False), "2": RowwiseParallel()},  # of 33 columns 17 here, 16 there
    cnn: {"5": RowwiseParallel(input_layouts=Replicate())},
    GPT: plan,
}
for make, layers in plans.items():
    torch.manual_seed(3)
    alone = make()
    model = parallelize_module(copy.deepcopy(alone), mesh, layers)
    assert all(isinstance(model.get_submodule(name).weight, DTensor) for name in layers)
    expected, _ = losses(alone, make, 0, 1)
    same(losses(model, make, 0, 1)[0], expected)
print("good")
""",
        2,
        seconds=300,
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_tensor_parallelism_alone_and_with_fsdp(job):
    done = job(
        MODELS
        + TENSOR_PARALLEL
        + """
torch.manual_seed(3)
alone = GPT()
start = copy.deepcopy(alone)
expected, _ = losses(alone, GPT, 0, 1)
grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
model = parallelize_module(copy.deepcopy(start), grid["tp"], plan)
assert model.blocks[0].query.weight.placements == (Shard(0),) and model.blocks[0].out.weight.placements == (Shard(1),)
assert model.blocks[0].up.weight.to_local().shape == (32, 16)
same(losses(model, GPT, 0, 1)[0], expected)
# two dimensions: each pair of processes has half of the batch, each process half of the layers, of which it keeps half
model = parallelize_module(copy.deepcopy(start), grid["tp"], plan)
for block in model.blocks:
    fully_shard(block, mesh=grid["dp"])
fully_shard(model, mesh=grid["dp"])
same(losses(model, GPT, grid.get_local_rank("dp"), 2)[0], expected)
weight = model.blocks[0].query.weight
assert weight.to_local().shape == (4, 16) and str(weight.placements[0]) == "_S(0, 2)" and weight.placements[1] == Shard(0)
trained = {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in model.state_dict().items()}
for key, value in alone.state_dict().items():
    if "bias" not in key:
        assert torch.allclose(trained[key], value, atol=1e-4), key
# a sequence in parts, the loss over parts of the classes
net = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, 32))
torch.manual_seed(1)
x, y = torch.randn(4, 6, 8), torch.randint(0, 32, (4, 6))
F.cross_entropy(net(x).flatten(0, 1), y.flatten(), label_smoothing=0.1).backward()
spread = parallelize_module(copy.deepcopy(net), grid["tp"], {
    "0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1)), "3": RowwiseParallel(output_layouts=Shard(1)),
    "4": SequenceParallel(), "5": ColwiseParallel(input_layouts=Shard(1), use_local_output=False)})
spread.zero_grad()
out = spread(distribute_tensor(x, grid["tp"], [Shard(1)]))
assert out.placements == (Shard(2),)
with loss_parallel():
    loss = F.cross_entropy(out.flatten(0, 1), distribute_tensor(y.flatten(), grid["tp"], [Replicate()]), label_smoothing=0.1)
    loss.backward()
for p, q in zip(net.parameters(), spread.parameters()):
    assert torch.allclose(p.grad, q.grad.full_tensor(), atol=1e-6), (p.grad, q.grad)
print("good")
""",  # noqa: E501
        4,
        seconds=300,
    )
    assert done.status == 0 and done.out.count("good") == 4, done.err


def test_settings_of_fully_shard(job):
    done = job(
        MODELS
        + """
def sharded(**settings):
    torch.manual_seed(3)
    model = mlp()
    for part in (model[0], model[2]):
        fully_shard(part, **settings)
    return fully_shard(model, **settings)

def run(model, step=0):
    x, y = (t.chunk(size)[rank] for t in batch(mlp, step))
    F.cross_entropy(model(x), y).backward()

def grads(model):
    return [p.grad.full_tensor() for p in model.parameters()]

torch.manual_seed(3)
alone = mlp()
x, y = batch(mlp, 0)
F.cross_entropy(alone(x), y).backward()
expected = [p.grad for p in alone.parameters()]
def good(found, factor=1.0, tolerance=1e-6):
    assert all(torch.allclose(f, factor * e, atol=tolerance) for f, e in zip(found, expected, strict=True))

for settings in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": True}):
    model = sharded(**settings)
    run(model)
    good(grads(model))
    assert all(isinstance(p, DTensor) for p in model.parameters())
# memory is given back between forward and backward, and after
model = sharded()
loss = model(x.chunk(size)[rank]).sum()
assert isinstance(model[0].weight, DTensor) and not isinstance(model[4].weight, DTensor)  # the root stays whole
loss.backward()
assert isinstance(model[4].weight, DTensor)
handle = model.unshard(async_op=True)
handle.wait()
assert type(model[4].weight) is nn.Parameter and model[4].weight.equal(alone[4].weight)
model.reshard()
# gradients add up without an exchange, then with one
model = sharded()
model.set_requires_gradient_sync(False)
run(model)
assert all(p.grad is None for p in model.parameters())
model.set_requires_gradient_sync(True)
run(model)
good(grads(model), 2.0)
model.set_gradient_divide_factor(1.0)
# half precision in between
torch.manual_seed(3)
model = mlp()
fully_shard(model[0], mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32))
out = model(x.chunk(size)[rank])
assert out.dtype == torch.float32 and model[4].weight.dtype == torch.bfloat16
run(model)
assert all(p.dtype == torch.float32 and p.grad.dtype == torch.float32 for p in model.parameters())
good(grads(model), tolerance=5e-3)
# prefetch, offloading, other dimensions, methods
model = sharded(offload_policy=CPUOffloadPolicy(), shard_placement_fn=lambda p: Shard(p.ndim - 1))
model.set_modules_to_forward_prefetch([model[0]])
model[0].set_modules_to_forward_prefetch([model[2]])
model[2].set_modules_to_backward_prefetch([model[0]])
assert model[0].weight.placements == (Shard(1),)
run(model)
good(grads(model))
seen = []
model[0].set_all_reduce_hook(lambda reduced: seen.append(reduced.numel()))
run(model)
assert len(seen) == 1
class Twice(nn.Linear):
    def again(self, x):
        return self(x) + F.linear(x, self.weight)
layer = fully_shard(Twice(4, 4))
register_fsdp_forward_method(layer, "again")
layer.again(torch.ones(2, 4)).sum().backward()
assert layer.weight.grad.full_tensor().eq(4).all()
# parameters that are made later
with torch.device("meta"):
    model = mlp()
fully_shard(model)
model.to_empty(device="cpu")
torch.manual_seed(3)
for part in model:
    if hasattr(part, "reset_parameters"):
        part.reset_parameters()
run(model)
good(grads(model))
for words, kind, call in (
    ("does not support deepcopy", AssertionError, lambda: copy.deepcopy(model)),
    ("do not implement forward", ValueError, lambda: fully_shard(nn.ModuleList([nn.Linear(1, 1)]))),
    ("is sharded already", ValueError, lambda: fully_shard(model)),
    ("over fewer processes", NotImplementedError, lambda: fully_shard(mlp(), reshard_after_forward=7)),
    ("scalar parameters", ValueError, lambda: fully_shard(nn.ParameterList([nn.Parameter(torch.ones(()))]))),
):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err
