"""Collectives beside PyTorch's gloo: one program, run by each one's torchrun, with every dtype and reduction, several
layouts of tensors, and groups."""

import json
import os
import subprocess
import sys

import pytest

import cresset

pytest.importorskip("torch")

PROGRAM = """
import importlib, json, os, sys
torch = importlib.import_module(sys.argv[1])
dist = importlib.import_module(sys.argv[1] + ".distributed")
dist.init_process_group("gloo")
rank, size, found = dist.get_rank(), dist.get_world_size(), {}
DTYPES = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool", "complex64",
          "complex128"]
LAYOUTS = {  # none with gaps: there gloo exchanges what lies in them
    "plain": lambda d: made((3, 4), d),
    "transposed": lambda d: made((4, 3), d).t(),
    "expanded from": lambda d: made((4,), d).repeat(3, 1),
    "0-d": lambda d: made((1,), d)[0],
    "empty": lambda d: made((0, 3), d),
    "large": lambda d: made((3000, 77), d),
}


def made(shape, dtype):
    n = 1
    for s in shape:
        n *= s
    values = (torch.arange(n) * 7 + 3 * rank + 1) % 11
    if dtype == "bool":
        return (values > 4).reshape(shape)
    values = values.reshape(shape).to(getattr(torch, dtype))
    return values * (1 + 2j) if dtype.startswith("complex") else values


def shown(t):
    kind = str(t.dtype)
    if t.dtype == torch.bool:
        t = t.int()
    if "complex" in kind:
        t = torch.view_as_real(t.contiguous())
    return [kind, list(t.shape), list(t.stride()) if t.numel() < 100 else None, t.double().flatten().tolist()[:500],
            float(t.double().sum())]


def case(name, f):
    try:
        found[name] = f()
    except Exception as error:
        found[name] = ["error", type(error).__name__]


def reduced(dtype, op, layout):
    t = LAYOUTS[layout](dtype)
    dist.all_reduce(t, getattr(dist.ReduceOp, op))
    return shown(t)


for dtype in DTYPES:
    for op in ("SUM", "PRODUCT", "MIN", "MAX"):
        if op == "SUM" or not dtype.startswith("complex"):
            case(f"all_reduce {dtype} {op}", lambda: reduced(dtype, op, "plain"))
    for layout in LAYOUTS:
        case(f"all_reduce {dtype} {layout}", lambda: reduced(dtype, "SUM", layout))

        def broadcast():
            t = LAYOUTS[layout](dtype)
            dist.broadcast(t, size - 1)
            return shown(t)
        case(f"broadcast {dtype} {layout}", broadcast)

        def all_gather():
            t = LAYOUTS[layout](dtype).contiguous()
            places = [torch.zeros_like(t) for _ in range(size)]
            dist.all_gather(places, t)
            return [shown(p) for p in places]
        case(f"all_gather {dtype} {layout}", all_gather)
for op in ("BAND", "BOR", "BXOR"):
    for dtype in ("int32", "uint8", "int64"):
        case(f"all_reduce {dtype} {op}", lambda: reduced(dtype, op, "plain"))


def reduce():
    t = made((5,), "float32")
    dist.reduce(t, 0)
    return shown(t) if rank == 0 else None


def gather():
    t = made((2, 3), "int64")
    places = [torch.zeros_like(t) for _ in range(size)] if rank == 1 else None
    dist.gather(t, places, 1)
    return [shown(p) for p in places] if places else None


def scatter():
    t = torch.zeros(3)
    dist.scatter(t, [made((3,), "float32") + r for r in range(size)] if rank == 1 else None, 1)
    return shown(t)


def reduce_scatter():
    t = torch.zeros(2, 3)
    dist.reduce_scatter(t, [made((2, 3), "float32") * (r + 1) for r in range(size)])
    return shown(t)


def all_to_all_single():
    counts = [r + rank for r in range(size)]
    given, place = made((sum(counts),), "float32"), torch.zeros(sum(counts))
    dist.all_to_all_single(place, given, counts, counts)
    return shown(place)


def uneven_all_gather():
    places = [torch.zeros(r + 1, 2) for r in range(size)]
    dist.all_gather(places, made((rank + 1, 2), "float32"))
    return [shown(p) for p in places]


def point_to_point():
    t = made((4,), "float64")
    place = torch.zeros_like(t)
    ops = [dist.P2POp(dist.isend, t, (rank + 1) % size), dist.P2POp(dist.irecv, place, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return shown(place)


def groups():
    some = []
    lists = [[0, 1], [1, 0], [size - 1, 0], [0], list(range(size))]
    for ranks in lists:
        group = dist.new_group(ranks)
        t = made((3,), "float32")
        if rank in ranks:
            dist.all_reduce(t, group=group)
            some.append([ranks, dist.get_rank(group), dist.get_process_group_ranks(group), shown(t)])
        else:
            some.append([ranks, dist.get_rank(group)])
    return some


def many_at_once():
    group = dist.new_group()
    tensors = [made((n,), "float32") for n in (1, 1000, 300000, 0, 7)]
    works = [dist.all_reduce(t, group=group if i % 2 else None, async_op=True) for i, t in enumerate(tensors)]
    for work in reversed(works):
        work.wait()
    return [shown(t) for t in tensors]


def objects():
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "list": list(range(rank))})
    some = [{"from": rank}, rank]
    dist.broadcast_object_list(some, 1)
    return [every, some]


for f in (reduce, gather, scatter, reduce_scatter, all_to_all_single, uneven_all_gather, point_to_point, groups,
          many_at_once, objects):
    case(f.__name__, f)
for name, f in {
    "no tensor": lambda: dist.all_reduce([1.0]),
    "text": lambda: dist.broadcast("text", 0),
    "too many places": lambda: dist.all_gather([torch.zeros(1)] * (size + 3), torch.zeros(1)),
    "gather_list on both": lambda: dist.gather(torch.zeros(1), [torch.zeros(1)] * size if rank else None, 0),
    "rank outside": lambda: dist.broadcast(torch.zeros(1), size + 5),
    "group of nobody": lambda: dist.new_group([size + 1]),
}.items():
    case("wrong: " + name, f)
dist.barrier()
with open(os.path.join(sys.argv[2], f"{sys.argv[1]}{rank}.json"), "w") as file:
    json.dump(found, file)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What each rank found, by implementation: {"torch": [...], "cresset": [...]}."""
    folder = tmp_path_factory.mktemp("collectives")
    (folder / "program.py").write_text(PROGRAM)
    sources = os.path.dirname(os.path.dirname(cresset.__file__))
    path = os.pathsep.join([sources, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    for name in ("torch", "cresset"):
        command = [sys.executable, "-m", f"{name}.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += [str(folder / "program.py"), name, str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    return {
        name: [json.loads((folder / f"{name}{rank}.json").read_text()) for rank in range(2)]
        for name in ("torch", "cresset")
    }


def test_results_are_those_of_gloo(both):
    wrong = []
    for rank, (ours, theirs) in enumerate(zip(both["cresset"], both["torch"], strict=True)):
        assert list(ours) == list(theirs)
        for name, expected in theirs.items():
            refused = isinstance(expected, list) and expected[:1] == ["error"]
            if refused and not name.startswith("wrong: "):
                continue  # gloo cannot do it; what it can must be the same here
            if ours[name] != expected:
                wrong.append(f"rank {rank}, {name}: {str(ours[name])[:300]} here, {str(expected)[:300]} there")
    assert not wrong, "\n".join(wrong)
