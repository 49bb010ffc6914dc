"""Kill a training run again and again at random instants: it must end with the weights of one that nobody disturbed, to
the bit.

    python tools/kill_training.py 200 [--seed 0] [--workers 2]

The run shuffles, drops out, augments in worker processes and saves after every second step, so that kills (SIGKILL,
which leaves no time for anything) fall into steps, validation and the writing of checkpoints.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cresset
from cresset import nn, train
from cresset.utils.data import DataLoader, Dataset

EPOCHS = 6


class Noisy(Dataset):
    """Points with a little noise drawn when they are fetched, by cresset and by Python."""

    def __init__(self, count):
        generator = cresset.Generator().manual_seed(7)
        self.points = cresset.randn(count, 6, generator=generator)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        noise = 0.1 * cresset.randn(6) + 0.01 * random.random()
        return self.points[index] + noise, (self.points[index].sum() > 0).long()


def child(folder, workers):
    """One process of the run: goes on where the last one was killed."""
    cresset.set_num_threads(1)
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 2))
    optimizer = cresset.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = cresset.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    loader = DataLoader(Noisy(160), batch_size=8, shuffle=True, num_workers=workers)
    run = train.fit(
        model, loader, nn.functional.cross_entropy, optimizer, epochs=EPOCHS,
        validation=DataLoader(Noisy(32), batch_size=16),
        scheduler=scheduler, clip_norm=1.0, folder=folder, save_every=2, resume=True, seed=1, progress="none",
        log_every=1,
    )  # fmt: skip
    cresset.save({"weights": model.state_dict(), "history": run.history}, os.path.join(folder, "final.pt"))


def start(folder, workers):
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(folder), "--workers", str(workers)]
    return subprocess.Popen(command, start_new_session=True)


def finish(process):
    if process.wait() != 0:
        raise SystemExit(f"kill_training: a run ended with status {process.returncode} by itself")


def same(one, other):
    return one["history"] == other["history"] and all(
        cresset.equal(one["weights"][name], other["weights"][name]) for name in one["weights"]
    )


def kill_training(kills, *, seed=0, workers=2, say=print):
    """(kills done, runs that came to their end): raises AssertionError at the first weights that differ."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as base:
        began = time.perf_counter()
        finish(start(os.path.join(base, "undisturbed"), workers))
        whole = time.perf_counter() - began
        expected = cresset.load(os.path.join(base, "undisturbed", "final.pt"))
        done, runs = 0, 0
        while done < kills:
            folder = os.path.join(base, f"run{runs}")
            in_this_run = 0
            while True:
                process = start(folder, workers)
                patience = draw.uniform(0.2, 1.1) * whole if done < kills else None
                began = time.perf_counter()
                try:
                    if process.wait(patience) != 0:
                        raise SystemExit(f"kill_training: a run ended with status {process.returncode} by itself")
                    break
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()
                    done, in_this_run = done + 1, in_this_run + 1
            result = cresset.load(os.path.join(folder, "final.pt"))
            assert same(result, expected), f"after {in_this_run} kills the weights differ (seed {seed}, run {runs})"
            epochs = [
                line["epoch"]
                for line in train.read_records(os.path.join(folder, "run.jsonl"))
                if line["kind"] == "epoch"
            ]
            assert epochs == list(range(1, EPOCHS + 1)), f"the record has the epochs {epochs}"
            if in_this_run == 0:
                whole = time.perf_counter() - began  # the machine is faster now than it was
            runs += 1
            say(f"run {runs}: {in_this_run} kills, the same bits ({done} kills in all)")
        return done, runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--child", help="a folder: be one process of the run")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.workers)
    else:
        kill_training(given.kills, seed=given.seed, workers=given.workers)


if __name__ == "__main__":
    main()
