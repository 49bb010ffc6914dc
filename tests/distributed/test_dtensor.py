"""DTensor: every operator gives the values and gradients of the plain one, whatever the placements of its operands."""

import pytest

START = """
import copy, itertools, warnings
import cresset.nn as nn
import cresset.nn.functional as F
from cresset.distributed.device_mesh import DeviceMesh, init_device_mesh
from cresset.distributed.tensor import *
from cresset.distributed.tensor import parallel
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
"""

EVERY_PLACEMENT = (
    START
    + """
mesh = init_device_mesh("cpu", (size,))

def spread(value, placement):
    if placement.is_partial():
        made = DTensor.from_local(value / size, mesh, [placement])
    else:
        made = distribute_tensor(value, mesh, [placement])
    return made.detach().requires_grad_(value.is_floating_point())

def tensors(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]

def check(name, function, *values):
    plain = [v.clone().requires_grad_(v.is_floating_point()) for v in values]
    expected = tensors(function(*plain))
    weights = [torch.arange(1.0, e.numel() + 1).view(e.shape) for e in expected]
    loss = [(e.double() * w).sum() for e, w in zip(expected, weights) if e.is_floating_point() and e.requires_grad]
    if loss:
        sum(loss).backward()
    choices = [
        [Replicate(), *map(Shard, range(v.ndim)), *([Partial()] if v.is_floating_point() else [])] for v in values
    ]
    combinations = list(itertools.product(*choices))
    if len(values) > 2:  # one is placed, or all are alike
        combinations = [c for c in combinations if sum(not p.is_replicate() for p in c) < 2 or len(set(c)) == 1]
    for combination in combinations:
        given = [spread(v, p) for v, p in zip(values, combination)]
        found = tensors(function(*given))
        for f, e in zip(found, expected, strict=True):
            assert f.shape == e.shape and f.dtype == e.dtype and f.stride() == e.stride(), (name, combination)
            assert torch.allclose(f.full_tensor(), e, atol=1e-5, rtol=1e-4), (name, combination, f, e)
        if loss:
            total = sum((f.double() * distribute_tensor(w, mesh, [Replicate()])).sum()
                        for f, w in zip(found, weights) if f.is_floating_point() and f.requires_grad)
            total.backward()
            for g, p, placement in zip(given, plain, combination):
                if p.grad is not None:
                    assert g.grad.placements == ((Replicate(),) if placement.is_partial() else (placement,)), name
                    assert torch.allclose(g.grad.full_tensor(), p.grad, atol=1e-4, rtol=1e-3), (name, combination)

a, b, c = torch.randn(4, 6), torch.randn(6, 4), torch.randn(2, 4, 6)
classes = torch.randint(0, 6, (8,))
x, w, v = torch.randn(8, 6), torch.randn(4, 6), torch.randn(4)
heads = [torch.randn(2, 2, 4, 6) for _ in range(3)]
for row in [
    ("add", lambda a, b: a + b, a, a), ("sub", lambda a: 1 - a, a), ("mul", lambda a, b: a * b, a, a),
    ("broadcast", lambda a, b: a * b, a, torch.randn(6)), ("div", lambda a, b: a / (b * b + 1), a, a),
    ("neg", lambda a: -a, a), ("pow", lambda a: a ** 2, a), ("gelu", F.gelu, a), ("double", lambda a: a.double(), a),
    ("lerp", lambda a, b: torch.lerp(a, b, 0.3), a, a), ("where", lambda a, b: torch.where(a > 0, a, b), a, a),
    ("mm", lambda a, b: a @ b, a, b), ("bmm", lambda a, b: a @ b, c, c.mT.contiguous()),
    ("einsum", lambda a, b: torch.einsum("ij,jk->ik", a, b), a, b), ("outer", torch.outer, torch.randn(4), v),
    ("addmm", torch.addmm, v, a, b), ("linear", F.linear, x, w, v), ("linear of three", F.linear, c, w),
    ("sum", lambda a: a.sum(1), a), ("mean", lambda a: a.mean(), a), ("mean keeps", lambda a: a.mean(0, True), a),
    ("amax", lambda a: a.amax(1), a), ("max", lambda a: a.max(), a), ("max along", lambda a: a.max(1)[0], a),
    ("prod", lambda a: a.prod(), a), ("std", lambda a: a.std(0), a), ("var", lambda a: a.var(1), a),
    ("norm", lambda a: a.norm(), a), ("norm along", lambda a: a.norm(dim=0), a), ("argmax", lambda a: a.argmax(1), a),
    ("logsumexp", lambda a: a.logsumexp(1), a), ("softmax", lambda a: F.softmax(a, -1), a),
    ("cumsum", lambda a: a.cumsum(0), a), ("topk", lambda a: a.topk(2, 1)[0], a), ("sort", lambda a: a.sort(0)[0], a),
    ("layer_norm", lambda x, w, b: F.layer_norm(x, (6,), w, b), c, torch.randn(6), torch.randn(6)),
    ("rms_norm", lambda x, w: F.rms_norm(x, (6,), w), c, torch.randn(6)),
    ("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), torch.randn(4, 4, 3), v, v),
    ("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), torch.randn(4, 4, 3), v, v),
    ("embedding", F.embedding, torch.randint(0, 8, (2, 4)), torch.randn(8, 6)),
    ("cross_entropy", F.cross_entropy, x, classes), ("nll", lambda x, t: F.nll_loss(F.log_softmax(x, 1), t), x, classes),
    ("smoothed", lambda x, t: F.cross_entropy(x, t, reduction="sum", label_smoothing=0.1), x, classes),
    ("mse", F.mse_loss, a, a), ("cat", lambda a, b: torch.cat([a, b], 1), a, a),
    ("stack", lambda a, b: torch.stack([a, b], 1), a, a), ("view", lambda a: a.view(2, 2, 6), a),
    ("view joins", lambda a: a.view(8, 6), c), ("flatten", lambda a: a.flatten(), c), ("t", lambda a: a.t(), a),
    ("permute", lambda a: a.permute(2, 0, 1), c), ("select", lambda a: a[1], a), ("slice", lambda a: a[:, 1:4], a),
    ("places", lambda a: a[[0, 2]], a), ("chunk", lambda a: a.chunk(2, 1), a), ("unbind", lambda a: a.unbind(0)[1], a),
    ("expand", lambda a: a.unsqueeze(1).expand(4, 3, 6), a), ("squeeze", lambda a: a.squeeze(), a[:, None].clone()),
    ("repeat", lambda a: a.repeat(2, 1), a), ("flip", lambda a: a.flip(0), a), ("roll", lambda a: a.roll(1, 0), a),
    ("tril", lambda a: a.tril(), c), ("gather", lambda a, i: a.gather(1, i), a, torch.randint(0, 6, (4, 3))),
    ("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads),
    ("convolution", lambda x, w: F.conv2d(x, w, padding=1), torch.randn(4, 2, 5, 5), torch.randn(3, 2, 3, 3)),
    ("pool", lambda x: F.max_pool2d(x, 2), torch.randn(4, 2, 4, 4)), ("clone", lambda a: a.clone(), a),
    ("uneven", lambda a, b: (a * b).sum(0) + b[1], torch.randn(3, 5), torch.randn(3, 5)),
]:
    check(*row)
print("good")
"""  # noqa: E501
)


@pytest.mark.parametrize("processes", [2, 3])
def test_values_and_gradients_are_those_of_plain_tensors(job, processes):
    done = job(EVERY_PLACEMENT, processes, seconds=300)
    assert done.status == 0 and done.out.count("good") == processes, done.err


def test_changes_of_placement_in_a_grid_of_two_dimensions(job):
    done = job(
        START
        + """
from cresset.distributed.tensor.placement_types import _StridedShard
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
for shape in ((4, 6), (5, 3), (1, 7)):
    whole = torch.randn(shape, dtype=torch.float64)
    one = [Replicate(), Shard(0), Shard(1)]
    pairs = [*itertools.product(one, one), (_StridedShard(0, split_factor=2), Shard(0))]
    for before, after in itertools.product(pairs, pairs):
        x = distribute_tensor(whole, mesh, before).requires_grad_()
        y = x.redistribute(mesh, after)
        assert y.placements == after and y.full_tensor().equal(whole), (before, after)
        assert y.to_local().equal(distribute_tensor(whole, mesh, after).to_local()), (before, after)
        (y.full_tensor() * whole).sum().backward()
        assert x.grad.placements == before and x.grad.full_tensor().equal(whole)
    for kind in ("sum", "avg", "max", "min"):
        for after in pairs[:-1]:
            x = DTensor.from_local(whole + rank, mesh, [Partial(kind), Partial(kind)])
            expected = {"sum": 4 * whole + 6, "avg": whole + 1.5, "max": whole + 3, "min": whole}[kind]
            assert torch.allclose(x.redistribute(mesh, after).full_tensor(), expected), (kind, after)
x = distribute_tensor(torch.randn(6, 4), mesh, [Shard(0), Shard(1)])
w = distribute_tensor(torch.randn(4, 4), mesh, [Replicate(), Shard(0)])
assert (x @ w).placements == (Shard(0), Partial())
assert torch.allclose((x @ w).full_tensor(), x.full_tensor() @ w.full_tensor(), atol=1e-6)
mean = x.detach().requires_grad_()
mean.mean().backward()
assert torch.allclose(mean.grad.full_tensor(), torch.full((6, 4), 1 / 24))
x = torch.full((2, 2), rank + 1.0, requires_grad=True)
y = DTensor.from_local(x, mesh, [Shard(0), Replicate()]).to_local(grad_placements=[Shard(0), Partial()])
y.sum().backward()
assert x.grad.tolist() == [[2, 2], [2, 2]]
print("good")
""",
        4,
    )
    assert done.status == 0 and done.out.count("good") == 4, done.err


def test_optimizers_change_distributed_parameters_as_plain_ones(job):
    done = job(
        START
        + """
mesh = init_device_mesh("cpu", (size,))

def cut(name, module, mesh):
    placements = {"0": {"weight": Shard(0), "bias": Shard(0)}, "2": {"weight": Shard(1)}}.get(name, {})
    for key, placement in placements.items():
        setattr(module, key, nn.Parameter(distribute_tensor(getattr(module, key), mesh, [placement])))

def inputs(module, given, mesh):
    return (DTensor.from_local(given[0], mesh, [Replicate()]),)

optim = torch.optim
for make in (lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: optim.AdamW(p, 0.01),
             lambda p: optim.Adam(p, 0.01, amsgrad=True, fused=True), lambda p: optim.Adam(p, 0.01, foreach=True),
             optim.RMSprop, optim.Adagrad, optim.Adafactor, optim.NAdam, optim.Adadelta, optim.Rprop, optim.ASGD,
             optim.Adamax, optim.RAdam):
    plain = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    spread = distribute_module(copy.deepcopy(plain), mesh, cut, inputs)
    assert isinstance(spread[2].bias, DTensor) and isinstance(spread[2].bias, nn.Parameter)
    one, other = make(plain.parameters()), make(spread.parameters())
    for step in range(4):
        x, y = torch.randn(6, 5), torch.randn(6, 3)
        one.zero_grad()
        other.zero_grad()
        assert all(p.grad is None for p in spread.parameters())
        F.mse_loss(plain(x), y).backward()
        F.mse_loss(spread(x), distribute_tensor(y, mesh, [Replicate()])).backward()
        norms = [nn.utils.clip_grad_norm_(net.parameters(), 0.1) for net in (plain, spread)]
        assert torch.allclose(norms[0], norms[1].full_tensor())
        one.step()
        other.step()
    for p, q in zip(plain.parameters(), spread.parameters()):
        assert torch.allclose(p, q.full_tensor(), atol=1e-5), type(one).__name__
    kept = other.state_dict()["state"][0]
    assert any(isinstance(value, DTensor) for value in kept.values())
    again = make(spread.parameters())
    again.load_state_dict(other.state_dict())
    assert any(isinstance(value, DTensor) for value in again.state[spread[0].weight].values())
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_what_it_is_and_what_it_refuses(job):
    done = job(
        START
        + """
mesh = init_device_mesh("cpu", (size,))
def refused(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)

x = distribute_tensor(torch.arange(6.0).view(3, 2), mesh, [Shard(0)])
if rank == 0:
    assert repr(x) == '''DTensor(local_tensor=tensor([[0., 1.],
        [2., 3.]]), device_mesh=DeviceMesh((2,), 'cpu', stride=(1,)), placements=(Shard(dim=0),))'''
assert x.shape == (3, 2) and x.to_local().shape == ((2, 2) if rank == 0 else (1, 2)) and x.stride() == (2, 1)
assert x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() == 6
assert str(x._spec) == "Spec(f32[3, 2](S(0)))" and isinstance(x, torch.Tensor)
refused(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: x + torch.ones(3, 2))
assert (x + torch.tensor(1.0)).full_tensor().tolist() == [[1, 2], [3, 4], [5, 6]]
refused(RuntimeError, "in-place operations that require placement changes", lambda: x.sum().exp_())
refused(ValueError, "must have the same length", lambda: distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)]))
refused(AssertionError, "greater than tensor ndim", lambda: distribute_tensor(torch.ones(2), mesh, [Shard(5)]))
refused(RuntimeError, "redistributing to Partial is for internal use", lambda: x.redistribute(mesh, [Partial()]))
refused(RuntimeError, "numpy() is not supported", lambda: x.numpy())
refused(RuntimeError, "No device mesh is currently active", lambda: distribute_tensor(torch.ones(2)))
refused(RuntimeError, "leaf tensors", lambda: distribute_tensor(torch.ones(2, requires_grad=True) * 1, mesh, [Shard(0)]))
from cresset.distributed.tensor.experimental import implicit_replication, local_map
with implicit_replication():
    assert (x + torch.ones(3, 2)).full_tensor().tolist() == [[1, 2], [3, 4], [5, 6]]
double = local_map(lambda part: part * 2, out_placements=[Shard(0)], in_placements=([Shard(0)],))
assert double(x).placements == (Shard(0),) and double(distribute_tensor(torch.ones(4), mesh, [Shard(0)])).shape == (4,)
refused(ValueError, "mismatched placements", lambda: double(x.redistribute(mesh, [Replicate()])))
assert dist.init_device_mesh is init_device_mesh and dist.tensor.DTensor is DTensor
with mesh:
    assert zeros(4, placements=[Shard(0)]).to_local().shape == (2,)
x[:, 0] = 7.0
assert x.full_tensor()[:, 0].tolist() == [7, 7, 7]
x.mul_(2).add_(x)
assert x.full_tensor()[:, 0].tolist() == [28, 28, 28]
refused(RuntimeError, "cannot be assigned where its dimension is cut", lambda: x.__setitem__(0, 1.0))
assert float(x.sum()) == x.full_tensor().sum().item() and bool((x[0, 0] == 28).item())
# random numbers are those of one process
torch.manual_seed(5)
expected = [torch.rand(5, 3), torch.randn(4, 4), torch.empty(6).uniform_(2, 3)]
torch.manual_seed(5)
found = [rand(5, 3, device_mesh=mesh, placements=[Shard(0)]), randn(4, 4, device_mesh=mesh, placements=[Shard(1)])]
found.append(empty(6, device_mesh=mesh, placements=[Shard(0)]).uniform_(2, 3))
assert all(f.full_tensor().equal(e) for f, e in zip(found, expected))
torch.manual_seed(rank)  # different ones: those of the first process
whole = rand(4, device_mesh=mesh, placements=[Replicate()]).to_local()
both = [torch.empty(4) for _ in range(size)]
dist.all_gather(both, whole)
assert both[0].equal(both[1])
torch.manual_seed(3)
expected = F.dropout(torch.ones(8, 4), 0.5)
torch.manual_seed(3)
assert F.dropout(ones(8, 4, device_mesh=mesh, placements=[Shard(0)]), 0.5).full_tensor().equal(expected)
# copies and files
layer = nn.Linear(2, 4)
layer.weight = nn.Parameter(distribute_tensor(layer.weight, mesh, [Shard(0)]))
again = copy.deepcopy(layer)
assert again.weight.full_tensor().equal(layer.weight.full_tensor()) and again.weight is not layer.weight
assert list(layer.state_dict()) == ["weight", "bias"] and isinstance(layer.state_dict()["weight"], DTensor)
layer.double()
assert layer.weight.dtype == torch.float64 and layer.weight.to_local().dtype == torch.float64
grads = torch.autograd.grad((layer.weight * 3).sum(), layer.weight)
assert grads[0].placements == (Shard(0),) and grads[0].full_tensor().eq(3).all()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    found = torch.histc(distribute_tensor(torch.arange(4.0), mesh, [Shard(0)]), 2, 0, 4)
assert found.full_tensor().tolist() == [2, 2] and "histc has no placement rule" in str(said[0].message)
print("good")
"""  # noqa: E501
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err


def test_grids_of_processes(job):
    done = job(
        START
        + """
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
row, column = divmod(rank, 2)
assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))" and mesh.shape == (2, 2) and mesh.ndim == 2
assert mesh.get_coordinate() == (row, column) and mesh.size() == 4 and mesh.size(0) == 2 and mesh.get_rank() == rank
assert mesh["dp"].mesh.tolist() == [column, column + 2] and mesh["tp"].mesh.tolist() == [2 * row, 2 * row + 1]
assert mesh["dp"] is mesh["dp"] and mesh["dp", "tp"] is mesh and repr(mesh["dp"]) == "DeviceMesh((dp=2), 'cpu', stride=(2,))"
assert mesh.get_local_rank("tp") == column and mesh["dp"].get_local_rank() == row
value = torch.tensor(float(rank))
dist.all_reduce(value, group=mesh.get_group("tp"))
assert value.item() == 4 * row + 1 and mesh["tp"].get_group() is mesh.get_group(1)
assert len(mesh.get_all_groups()) == 2 and dist.get_process_group_ranks(mesh.get_group(0)) == [column, column + 2]
flat = mesh._flatten("all")
assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["all"] is flat and repr(flat) == "DeviceMesh((all=4), 'cpu', stride=(1,))"
assert DeviceMesh.from_group(mesh.get_group("tp"), "cpu").mesh.tolist() == mesh["tp"].mesh.tolist()
assert mesh == DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp")) and mesh != mesh["tp"]
for words, kind, call in (
    ("Invalid mesh_dim_names", KeyError, lambda: mesh["pp"]),
    ("Cannot slice a DeviceMesh without", RuntimeError, lambda: init_device_mesh("cpu", (4,))["dp"]),
    ("bigger than default world size 4", RuntimeError, lambda: init_device_mesh("cpu", (8,))),
    ("`mesh_dim` needs to be specified", RuntimeError, lambda: mesh.get_group()),
    ("Device type with index", RuntimeError, lambda: init_device_mesh("cpu:0", (4,))),
    ("must be unique", RuntimeError, lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a"))),
):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
half = DeviceMesh("cpu", [0, 1])
assert (half.get_coordinate() is None) == (rank > 1)
split = init_device_mesh("cpu", (4,), mesh_dim_names=("x",))._unflatten(0, (2, 2), ("p", "q"))
assert split["p"].mesh.tolist() == [column, column + 2]
print("good")
""",  # noqa: E501
        4,
    )
    assert done.status == 0 and done.out.count("good") == 4, done.err


def test_a_dimension_of_length_one_stays_cut(job):
    done = job(
        START
        + """
mesh = init_device_mesh("cpu", (size,))
cut = distribute_tensor(torch.tensor([[1.0, 2.0]]), mesh, [Shard(0)])
whole = distribute_tensor(torch.tensor([[3.0, 4.0]]), mesh, [Replicate()])
for factor in (torch.tensor(2.0), distribute_tensor(torch.tensor(2.0), mesh, [Replicate()])):
    assert (cut * factor).placements == (Shard(0),)
cut.mul_(distribute_tensor(torch.tensor(2.0), mesh, [Replicate()]))
cut.add_(whole).add_(cut)
assert cut.placements == (Shard(0),) and cut.full_tensor().tolist() == [[10.0, 16.0]]
from cresset.distributed.fsdp import fully_shard
model = fully_shard(nn.Linear(2, 1), mesh=mesh)
model(torch.ones(3, 2)).sum().backward()
norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
assert torch.allclose(norm.full_tensor(), torch.tensor(27.0).sqrt())  # three rows: 3, 3 and, for the bias, 3
print("good")
"""
    )
    assert done.status == 0 and done.out.count("good") == 2, done.err
