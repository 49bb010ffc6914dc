"""Kill random ranks of a job at random instants: it starts again, resumes from its checkpoint, and ends with the bits
of a run that nobody disturbed.

    python -m tests.distributed.kills --kills 200
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from .faults import environment, processes_with

SIZE, STEPS, KILLS_A_JOB = 3, 12, 10

PROGRAM = """
import os, sys, time
import cresset as torch, cresset.distributed as dist, cresset.nn as nn
import cresset.distributed.checkpoint as dcp

folder = sys.argv[1]
rank = int(os.environ["RANK"])
with open(os.path.join(folder, f"pid{rank}.new"), "w") as file:
    file.write(str(os.getpid()))
os.replace(os.path.join(folder, f"pid{rank}.new"), os.path.join(folder, f"pid{rank}"))
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
wrapped = nn.parallel.DistributedDataParallel(model)
saved = os.path.join(folder, "checkpoint")
step = 0


def train(step):
    data = torch.Generator().manual_seed(1000 * step + rank)
    optimizer.zero_grad()
    wrapped(torch.randn(8, 4, generator=data)).square().mean().backward()
    optimizer.step()


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}


if os.path.exists(os.path.join(saved, ".metadata")):
    train(0)  # gives the optimizer its state, which is then replaced
    loaded = state()
    dcp.load(loaded, checkpoint_id=saved)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    step = loaded["step"]
while step < int(sys.argv[2]):
    train(step)
    step += 1
    dcp.save(state(), checkpoint_id=saved)
    time.sleep(0.02)
dist.barrier()
if rank == 0:
    numbers = [p.detach().view(-1).view(torch.int32).tolist() for p in model.parameters()]
    with open(os.path.join(folder, "bits"), "w") as file:
        file.write(repr(numbers))
dist.destroy_process_group()
"""


def run(seed, kills):
    """Run the job once and kill so many ranks meanwhile, as far as it lasts; (kills, bits, problems)."""
    chance, done = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "program.py").write_text(PROGRAM)
        options = ["--standalone", f"--nproc-per-node={SIZE}", "--max-restarts=1000", "--shutdown-timeout=2"]
        command = [
            sys.executable,
            "-m",
            "cresset.distributed.run",
            *options,
            str(folder / "program.py"),
            name,
            str(STEPS),
        ]
        agent = subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 120 + 30 * kills
        while agent.poll() is None and done < kills and time.monotonic() < deadline:
            time.sleep(chance.uniform(0.0, 2.5))
            with contextlib.suppress(OSError, ValueError):
                pid = int((folder / f"pid{chance.randrange(SIZE)}").read_text())
                if name in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode():
                    os.kill(pid, signal.SIGKILL)
                    done += 1
        try:
            output = agent.communicate(timeout=max(1.0, deadline - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)
            return done, None, [f"the job did not end: {agent.communicate()[0][-3000:]}"]
        problems = [f"torchrun ended with {agent.returncode}: {output[-3000:]}"] if agent.returncode else []
        if left := processes_with(name):
            problems.append(f"processes left: {left}")
        bits = (folder / "bits").read_text() if (folder / "bits").exists() else None
        return done, bits, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    given = parser.parse_args()
    total, bad, seed = 0, 0, given.first - 1
    _, wanted, problems = run(0, 0)
    assert wanted and not problems, problems
    while total < given.kills:
        seed += 1
        kills, bits, problems = run(seed, min(KILLS_A_JOB, given.kills - total))
        total += kills
        if bits != wanted:
            problems.append("the bits are others")
        bad += bool(problems)
        print(f"job {seed}: {kills} kills, {total} in all" + "".join(f"\n    {p}" for p in problems), flush=True)
    jobs = seed - given.first + 1
    print(f"{total} kills in {jobs} jobs; {jobs - bad} jobs ended with the bits of the undisturbed run", flush=True)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
