"""DTensor beside PyTorch's: placements of results, texts and errors, in groups of two processes of each."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import cresset
from cresset.distributed.engines import mpi

pytest.importorskip("torch")

PROGRAM = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
library = sys.argv[1]
torch = importlib.import_module(library)
dist = importlib.import_module(library + ".distributed")
spread = importlib.import_module(library + ".distributed.tensor")
meshes = importlib.import_module(library + ".distributed.device_mesh")
F = importlib.import_module(library + ".nn.functional")
S, R, P = spread.Shard, spread.Replicate(), spread.Partial()
dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = meshes.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
found = {}

def put(placement, *shape):
    value = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape) / 7
    if placement == P:
        return spread.DTensor.from_local(value / 2, mesh, [P])
    return spread.distribute_tensor(value, mesh, [placement])

def note(name, call):
    try:
        result = call()
    except Exception as error:
        found[name] = type(error).__name__
        return
    results = result if isinstance(result, (list, tuple)) else [result]
    found[name] = [[str(r.placements), list(r.shape), [round(v, 3) for v in r.full_tensor().flatten().tolist()]]
                   for r in results]

for x in (R, S(0), S(1), P):
    for y in (R, S(0), S(1), P):
        note(f"add {x} {y}", lambda: put(x, 4, 6) + put(y, 4, 6))
        note(f"mul {x} {y}", lambda: put(x, 4, 6) * put(y, 4, 6))
        if P not in (x, y):
            note(f"mm {x} {y}", lambda: put(x, 4, 6) @ put(y, 6, 8))
    note(f"relu {x}", lambda: torch.relu(put(x, 4, 6)))
    note(f"sum {x}", lambda: put(x, 4, 6).sum())
    note(f"sum 0 {x}", lambda: put(x, 4, 6).sum(0))
    note(f"mean {x}", lambda: put(x, 4, 6).mean(1))
    note(f"t {x}", lambda: put(x, 4, 6).t())
    note(f"softmax {x}", lambda: F.softmax(put(x, 4, 6), 1))
    note(f"unsqueeze {x}", lambda: put(x, 4, 6).unsqueeze(0))
    note(f"chunk {x}", lambda: put(x, 4, 6).chunk(2, 0))
    note(f"cat {x}", lambda: torch.cat([put(x, 4, 6), put(x, 4, 6)], 1))
    note(f"layer_norm {x}", lambda: F.layer_norm(put(x, 4, 6), (6,)))
    note(f"linear {x}", lambda: F.linear(put(x, 4, 6), put(R, 2, 6)))
    note(f"view {x}", lambda: put(x, 4, 6).view(2, 2, 6))
    note(f"flatten {x}", lambda: put(x, 4, 6).flatten())
    note(f"double {x}", lambda: put(x, 4, 6).double())
    note(f"zeros_like {x}", lambda: torch.zeros_like(put(x, 4, 6)))
    note(f"in place {x}", lambda: put(x, 4, 6).mul_(2.0))
note("mixed", lambda: put(S(0), 4, 6) + torch.ones(4, 6))
note("too many", lambda: spread.distribute_tensor(torch.ones(2), mesh, [S(0), S(0)]))
note("no such dimension", lambda: spread.distribute_tensor(torch.ones(2), mesh, [S(3)]))
note("to parts of a sum", lambda: put(S(0), 4, 6).redistribute(mesh, [P]))
found["repr"] = [repr(put(S(0), 2, 2)), repr(mesh), str(put(S(0), 2, 2)._spec), repr(S(1)), repr(R), repr(P), str(P)]
grid = meshes.init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
found["mesh"] = [repr(grid), repr(grid["dp"]), repr(grid["tp"]), list(grid.get_coordinate()), repr(grid._flatten("all"))]
if rank == 0:
    print("FOUND" + json.dumps(found), flush=True)
dist.barrier()
"""  # noqa: E501


def run(library, tmp_path, port):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    source = os.path.dirname(os.path.dirname(cresset.__file__))
    started = []
    for rank in range(2):
        environment = {
            **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        command = [sys.executable, str(file), library]
        started.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    outs = [process.communicate(timeout=200) for process in started]
    text = next((line for line in outs[0][0].splitlines() if line.startswith("FOUND")), None)
    assert text is not None, (library, outs)
    return json.loads(text.removeprefix("FOUND"))


# What differs on purpose, with the reason.
DIFFERENT = {
    "mean P(sum)": "the mean of parts of a sum is a part of the sum of means; PyTorch reduces first",
    "flatten S(1)": "PyTorch keeps parts that are not in one piece; they are brought together here",
}


@pytest.mark.skipif(not mpi.is_available(), reason="needs MPI: pip install mpich")
def test_placements_texts_and_errors_are_pytorchs(tmp_path):
    import socket

    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], other.getsockname()[1]
    theirs, mine = run("torch", tmp_path, ports[0]), run("cresset", tmp_path, ports[1])
    different = {key: (mine[key], theirs[key]) for key in theirs if mine[key] != theirs[key] and key not in DIFFERENT}
    assert not different
