"""The fault matrix: in a job of three ranks one does something wrong, and every other one has to say so, in time.

    python -m tests.distributed.faults --times 50 [--only killed] [--seconds 5]

Each survivor must raise a DistBackendError that names rank, host, collective, shape and the line of the program on both
sides, within 5 seconds; no process aborts, none is left, and no file is left in /dev/shm.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cresset

from .machines import Machines, why_not

SOURCES = os.path.dirname(os.path.dirname(cresset.__file__))
SIZE = 3
FAULTS = ["wrong size", "wrong dtype", "other operation", "missing", "killed", "stopped", "exception", "network cut"]

PROGRAM = """
import datetime, json, os, random, signal, sys, threading, time
import cresset as torch, cresset.distributed as dist

fault, culprit, seed, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank = int(os.environ["RANK"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the agent has seen it, too; the ranks shall say it themselves
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2 if fault == "missing" else 60))
with open("/proc/self/maps") as maps, open(os.path.join(folder, f"memory{rank}"), "w") as file:
    file.writelines(sorted({line.split()[5] + chr(10) for line in maps if "mpich_shm_" in line}))
chance = random.Random(seed)  # the same in all ranks
steps, sizes = chance.randrange(1, 40), [chance.choice([1, 3, 1000, 300_000]) for _ in range(50)]
broken = os.path.join(folder, "broken")


def now_it_breaks():
    with open(broken + ".new", "w") as file:
        file.write(str(time.time()))
    os.replace(broken + ".new", broken)


def hit():
    now_it_breaks()
    os.kill(os.getpid(), signal.SIGKILL if fault == "killed" else signal.SIGSTOP)


try:
    dist.barrier()
    if fault in ("killed", "stopped") and rank == culprit:  # at any instant
        threading.Timer(chance.uniform(0.0, 0.7), hit).start()
    if fault == "network cut":
        open(os.path.join(folder, f"ready{rank}"), "w").close()
    for step in range(steps if fault not in ("killed", "stopped", "network cut") else 10**9):
        x = torch.ones(sizes[step % 50])
        dist.all_reduce(x)
    if rank == culprit:
        now_it_breaks()
        if fault == "wrong size":
            dist.all_reduce(torch.ones(4))
        elif fault == "wrong dtype":
            dist.all_reduce(torch.ones(3, dtype=torch.float64))
        elif fault == "other operation":
            dist.broadcast(torch.ones(3), 0)
        elif fault == "missing":
            time.sleep(30)
        elif fault == "exception":
            raise KeyError("of my own")
    dist.all_reduce(torch.ones(3))
    words = {"kind": "nothing went wrong", "text": ""}
except KeyError:
    raise
except BaseException as error:
    words = {"kind": type(error).__name__, "text": str(error)}
words["at"] = time.time()
with open(os.path.join(folder, f"said{rank}.new"), "w") as file:
    json.dump(words, file)
os.replace(os.path.join(folder, f"said{rank}.new"), os.path.join(folder, f"said{rank}"))
os._exit(7)
"""


def environment():
    path = os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def torchrun(fault, *options):
    # Who is killed or raises is seen by the agent at once: it leaves the others the time to see it themselves.
    patience = "6" if fault in ("killed", "exception") else "3"
    return [sys.executable, "-m", "cresset.distributed.run", "--shutdown-timeout", patience, *options]


def wait_for(files, seconds):
    deadline = time.monotonic() + seconds
    while not all(file.exists() for file in files):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Watch(threading.Thread):
    """Notices when the whole machine stands still for a while: then nobody's deadline means anything."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest, self.over = 0.0, threading.Event()
        self.start()

    def run(self):
        last = time.monotonic()
        while not self.over.wait(0.05):
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now


def run(fault, seed, limit=5.0):
    """The problems that a run showed, in words. A run during which this process itself stood still is not counted."""
    for _ in range(10):
        watch = Watch()
        problems = run_once(fault, seed, limit)
        watch.over.set()
        if not problems or watch.longest < 1.0:
            break
    return problems


def run_once(fault, seed, limit):
    culprit = random.Random(f"{fault} {seed}").randrange(SIZE)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        program = folder / "program.py"
        program.write_text(PROGRAM)
        arguments = [str(program), fault, str(culprit), str(seed), name]
        if fault == "network cut":
            machines = stack.enter_context(Machines(2))
            meeting = ["--nnodes", "2", "--master-addr", machines.address(0), "--master-port", "29500"]
            shares = [["--node-rank", str(i), "--nproc-per-node", str(2 - i)] for i in range(2)]
            commands = [
                machines.command(i, torchrun(fault, *meeting, *share, *arguments)) for i, share in enumerate(shares)
            ]
        else:
            commands = [torchrun(fault, "--standalone", "--nproc-per-node", str(SIZE), *arguments)]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        agents = [subprocess.Popen(command, env=environment(), **quiet) for command in commands]
        if fault == "network cut":
            if not wait_for([folder / f"ready{rank}" for rank in range(SIZE)], 60):
                for agent in agents:
                    os.killpg(agent.pid, signal.SIGKILL)
                return ["the job did not begin: " + " ".join(agent.communicate()[0] for agent in agents)]
            time.sleep(random.Random(seed).uniform(0.0, 0.5))
            (folder / "broken").write_text(str(time.time()))
            machines.cut(1)
        outputs, problems = [], []
        for agent in agents:
            try:
                outputs.append(agent.communicate(timeout=60)[0])
            except subprocess.TimeoutExpired:
                os.killpg(agent.pid, signal.SIGKILL)
                outputs.append(agent.communicate()[0])
                problems.append("the agent did not end")
        survivors = [
            r for r in range(SIZE) if r != culprit or fault in ("wrong size", "wrong dtype", "other operation")
        ]
        survivors = list(range(SIZE)) if fault == "network cut" else survivors
        if not (folder / "broken").exists():
            return ["the job did not come to the fault: " + " ".join(outputs)]
        start = float((folder / "broken").read_text()) + (2.0 if fault == "missing" else 0.0)
        for rank in survivors:
            file = folder / f"said{rank}"
            if not file.exists():
                problems.append(f"rank {rank} said nothing: {' '.join(outputs)[-2000:]}")
                continue
            said = json.loads(file.read_text())
            late = said["at"] - start
            if late > limit:
                problems.append(f"rank {rank} said it after {late:.1f} s")
            problems += [f"rank {rank}: {p}: {said['text']}" for p in wrong_words(fault, rank, culprit, said)]
        if any("Abort(" in output or "Assertion failed" in output for output in outputs):
            problems.append(f"MPI aborted: {outputs}")
        shared = {path for rank in range(SIZE) for path in (folder / f"memory{rank}").read_text().splitlines()}
        if left := [path for path in shared if os.path.exists(path)]:
            problems.append(f"left in /dev/shm: {left}")
        if fault != "network cut" and not shared:
            problems.append("the ranks share no memory: nothing was looked at")
        if left := processes_with(name):
            problems.append(f"processes left: {left}")
        return problems


def wrong_words(fault, rank, culprit, said):
    """What the words of a survivor lack."""
    text = said["text"]
    if said["kind"] != "DistBackendError":
        return [said["kind"]]
    wanted = [r"all_reduce\(\[\d+\] of torch\.float", r"program\.py:\d+", rf"\b{rank} on \S+"]
    if fault == "network cut":
        cut = (
            "the store at .* does not answer" if rank == 2 else r"rank 2 on machine1 gave no sign of life|the store at"
        )
        wanted.append(cut)
    else:
        wanted.append(rf"\b{culprit}(:| on \S+)")
    if fault in ("wrong size", "wrong dtype", "other operation"):
        wanted += [
            "do not call the same",
            {"wrong size": r"\[4\]", "wrong dtype": "float64"}.get(fault, r"broadcast\(\[3\]"),
        ]
    lines = len(re.findall(r"program\.py:\d+", text))
    return [f"lacks {w}" for w in wanted if not re.search(w, text)] + (["one side alone"] if lines < 2 else [])


def processes_with(text):
    """Processes whose command line has a text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if text in words and int(pid) != os.getpid():
                found.append((pid, words))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--only", choices=FAULTS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    bad = collections.Counter()
    for fault in [given.only] if given.only else FAULTS:
        if fault == "network cut" and (reason := why_not()):
            print(f"{fault}: left out, {reason}", flush=True)
            continue
        for seed in range(given.first, given.first + given.times):
            if problems := run(fault, seed, given.seconds):
                bad[fault] += 1
                print(f"{fault}, seed {seed}: " + "\n    ".join(problems), flush=True)
        print(f"{fault}: {given.times - bad[fault]} of {given.times} runs are good", flush=True)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
