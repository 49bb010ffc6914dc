"""Many processes in one: stores, liveness, groups and the commit of checkpoints, with faults that a seed chooses.

python -m tests.distributed.test_simulation --seeds 2000 --ranks 4096     the long form
"""

import argparse
import gc
import multiprocessing
import os
import random
import re
import time
from datetime import timedelta
from functools import partial

import pytest

import cresset
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint.processes import Alone
from cresset.distributed.checkpoint.state_dict_loader import fetch
from cresset.distributed.checkpoint.state_dict_saver import commit
from cresset.distributed.engines import Kind
from cresset.distributed.errors import DistBackendError
from cresset.distributed.group import ProcessGroup
from cresset.distributed.liveness import Member
from cresset.distributed.store import PrefixStore, TCPStore

from .simulation import World

PORT, STEPS, PER_HOST, TIMEOUT = 29500, 12, 8, 2.0
CALLS = {
    "all_reduce": (Kind.ALL_REDUCE, "all_reduce", cresset.ones(3), "SUM"),
    "wrong size": (Kind.ALL_REDUCE, "all_reduce", cresset.ones(4), "SUM"),
    "wrong dtype": (Kind.ALL_REDUCE, "all_reduce", cresset.ones(3, dtype=cresset.int64), "SUM"),
    "other operation": (Kind.BARRIER, "barrier", None, ""),
}
FAULTS = [
    "killed", "stopped", "machine lost", "network cut", "exception", "missing", "wrong size", "wrong dtype",
    "other operation", "holder killed", "slow network", "full disk", "killed while saving",
]  # fmt: skip
SAVES = ("full disk", "killed while saving")
MOST_THAT_SAVE = 256  # what each writes is divided by all of them, with the square of their number


def state(step):
    """What is saved after a step."""
    tensors = {f"weight{i}": cresset.full((7 + i,), float(10 * step + i)) for i in range(5)}
    return {**tensors, "step": step}


class Exchanges:
    """What MPI does with fingerprints: an exchange ends when all have come, well if all said the same."""

    def __init__(self, world, size):
        self.world, self.size, self.waiting = world, size, {}
        self.given = {}  # number of an exchange -> what each rank gives, where something is gathered

    def arrive(self, number, engine, exchange, fingerprint):
        if engine.process.stopped or not engine.process.alive:
            return
        came = self.waiting.setdefault(number, {})
        came[engine.rank] = (engine, exchange, fingerprint)
        if len(came) == self.size:
            self.world.at(self.world.delay(), partial(self.end, number))

    def end(self, number):
        came = self.waiting[number]
        if self.world.cut_off:
            hosts = {engine.process.host for engine, _, _ in came.values()}
            if len(hosts) > 1 and hosts & self.world.cut_off:
                self.world.held.append(partial(self.end, number))  # when the network is whole again
                return
        state = "done" if len({fingerprint for _, _, fingerprint in came.values()}) == 1 else "different"
        for engine, exchange, _ in self.waiting.pop(number).values():
            exchange.state = state
            engine.process.wake()


class Together:
    """The ranks of a group that save a checkpoint, as checkpoint.save sees them."""

    def __init__(self, group, exchanges):
        self.group, self.exchanges, self.rank, self.size = group, exchanges, group.rank(), group.size()

    def gather(self, value):
        every = self.exchanges.given.setdefault(self.group._engine.count + 1, [None] * self.size)
        every[self.rank] = value
        self.group._begin(Kind.ALL_GATHER, "all_gather_object", None, None).wait()
        return every


class Exchange:
    state, problem, source = None, "", 0


class Engine:
    """The engine of a simulated rank."""

    def __init__(self, exchanges, process, rank):
        self.exchanges, self.process, self.rank, self.size, self.count = exchanges, process, rank, exchanges.size, 0

    def begin(self, kind, source, target, reduction=0, root=0, fingerprint=0):
        """Its program has computed for a while before: it comes that much later."""
        self.count += 1
        exchange, world = Exchange(), self.process.world
        arrive = partial(self.exchanges.arrive, self.count, self, exchange, fingerprint)
        world.at(world.random.uniform(0.001, 0.02), arrive)
        return exchange

    def poll(self, exchange, microseconds):
        deadline = self.process.world.time + microseconds / 1e6
        if microseconds < 1000:  # not worth a change of threads
            return exchange.state
        process = self.process
        while exchange.state is None and (left := deadline - process.world.time) > 0:
            process.wait(left)
        return exchange.state

    def abandon(self):
        pass


class Job:
    """Ranks that call all_reduce again and again, and a fault."""

    def __init__(self, seed, size, fault):
        size = min(size, MOST_THAT_SAVE) if fault in SAVES else size
        self.world, self.size, self.fault = World(seed), size, fault
        chance = random.Random(seed)
        self.culprit, self.step = chance.randrange(size), chance.randrange(1, STEPS)
        self.instant, self.broken_at = chance.uniform(0.0, 0.4), None
        self.timeout = (
            TIMEOUT if fault == "missing" else 60.0 if fault == "slow network" else chance.choice([TIMEOUT, 60])
        )
        self.exchanges, self.finished, self.saved = Exchanges(self.world, size), {}, None
        self.holder = self.world.process("host0", "agent", self.hold)
        self.ranks = [self.world.process(self.host(r), f"rank{r}", self.main(r)) for r in range(size)]
        if fault == "slow network":
            self.world.latency = (0.0001, 0.4)

    @staticmethod
    def host(rank):
        return f"host{rank // PER_HOST}"

    def hold(self, around):
        store = TCPStore("host0", PORT, is_master=True, wait_for_workers=False, _around=around)
        around.sleep(1000.0)
        store.close()

    def main(self, rank):
        def run(around):
            patience = timedelta(seconds=120)
            store = PrefixStore("attempt_0", TCPStore("host0", PORT, timeout=patience, _around=around))
            member = Member(store, str(rank), "torchrun", around)
            engine = Engine(self.exchanges, around.process_itself, rank)
            timeout = timedelta(seconds=self.timeout)
            group = ProcessGroup(
                engine, range(self.size), PrefixStore("0", store), "0", "gloo", timeout, "", member, around=around
            )
            member.meet(store, "ready", self.size, patience)
            if self.fault in SAVES:
                self.save(group, around)
                return member.leave()
            if rank == self.culprit:
                self.plan_the_fault()
            for step in range(STEPS):
                name = "all_reduce"
                if rank == self.culprit and step == self.step:
                    name = self.program_fault(around)
                kind, called, about, words = CALLS[name]
                group._begin(kind, called, None, None, words=words, about=about).wait()
            return member.leave()

        def watched(around):
            try:
                run(around)
            finally:
                self.finished[rank] = self.world.time

        return watched

    def save(self, group, around):
        """Save twice; in the second time the disk gets full, or somebody is killed."""
        processes, disk = Together(group, self.exchanges), around.disk
        for step in range(2):
            if step == 1 and group.rank() == self.culprit:
                self.broken_at = self.world.time
                if self.fault == "full disk":
                    disk.room = disk.used() + int(self.instant * disk.used())
                else:
                    self.world.at(self.instant / 10, self.ranks[self.culprit].kill)
            writer, planner = checkpoint.FileSystemWriter("/saved", _disk=disk), checkpoint.DefaultSavePlanner()
            commit(state(step), writer, planner, processes)
            self.saved = step

    def check_saved(self):
        """The disk has the old checkpoint or the new one, whole; and every survivor knows who failed."""
        reader, found = checkpoint.FileSystemReader("/saved", _disk=self.world.disk), state(-1)
        fetch(found, reader, checkpoint.DefaultLoadPlanner(), Alone())
        step = found["step"]
        assert step == self.saved or (step == 1 and self.fault == "killed while saving"), (step, self.saved)
        assert all(found[name].equal(wanted) for name, wanted in state(step).items() if name != "step"), found
        for rank, process in enumerate(self.ranks):
            if process.status == 0 or (rank == self.culprit and self.fault == "killed while saving"):
                continue
            assert rank in self.finished, f"rank {rank} waits for ever"
            waited, text = self.finished[rank] - self.broken_at, str(process.error)
            assert waited <= 5.0, f"rank {rank} ended {waited:.1f} s after {self.fault}: {text}"
            if self.fault == "full disk":
                assert isinstance(process.error, checkpoint.CheckpointException), (rank, process.error)
                assert re.search(r"rank \d+: OSError: .*No space left on device", text), text
            else:
                assert isinstance(process.error, DistBackendError), (rank, process.error)
                assert f"rank {self.culprit} on {self.host(self.culprit)} ended" in text, text

    def program_fault(self, around):
        """What the program of the culprit does wrong; the call that it makes."""
        if self.fault in CALLS:
            self.broken_at = self.world.time
            return self.fault
        if self.fault == "exception":
            self.broken_at = self.world.time
            raise KeyError("of my own")
        if self.fault == "missing":
            self.broken_at = self.world.time
            around.sleep(1000.0)
        return "all_reduce"

    def plan_the_fault(self):
        if self.fault in ("killed", "stopped", "machine lost", "network cut", "holder killed"):
            self.world.at(self.instant, self.world_fault)

    def world_fault(self):
        if self.ranks[self.culprit].over:
            return
        self.broken_at, host = self.world.time, self.host(self.culprit)
        if self.fault == "killed":
            self.ranks[self.culprit].kill()
        elif self.fault == "stopped":
            self.ranks[self.culprit].stopped = True
        elif self.fault == "holder killed":
            self.holder.kill()
        else:
            self.world.cut_off.add(host)
            if self.fault == "machine lost":
                for process in [self.holder, *self.ranks]:
                    if process.host == host:
                        process.kill()

    def run(self):
        try:
            self.world.run(200.0)
            self.check()
            return self.world.story.hexdigest()
        finally:
            self.world.close()

    def check(self):
        """Every survivor has ended in time, and has named the culprit."""
        if self.fault in SAVES:
            return self.check_saved()
        if self.broken_at is None or self.fault == "slow network":
            errors = [p.error for p in self.ranks if p.error is not None]
            assert not errors and all(p.status == 0 for p in self.ranks), (self.fault, errors[:1])
            return
        lost = {self.culprit} if self.fault in ("killed", "stopped", "missing", "exception") else set()
        if self.fault == "machine lost":
            lost = {r for r in range(self.size) if self.host(r) == self.host(self.culprit)}
        patience = 5.0 + (TIMEOUT if self.fault == "missing" else 0.0)
        for rank, process in enumerate(self.ranks):
            if rank in lost or (process.status == 0 and self.fault not in CALLS):
                continue  # whoever ended well had all that it needed before the fault
            assert rank in self.finished, f"rank {rank} waits for ever"
            waited = self.finished[rank] - self.broken_at
            assert waited <= patience, f"rank {rank} ended {waited:.1f} s after {self.fault}"
            assert isinstance(process.error, DistBackendError), (rank, process.error, process.status)
            self.check_words(rank, str(process.error))

    def check_words(self, rank, text):
        assert "test_simulation.py:" in text and "all_reduce([3] of torch.float32, SUM)" in text, text
        away = self.host(self.culprit)
        missing = re.search(r"ranks? (\d+).*: did not come", text) or re.search(r": rank (\d+) on", text)
        named = int(missing[1]) if missing else None
        if self.fault == "holder killed" or (away == "host0" and self.fault in ("machine lost", "network cut")):
            if self.fault == "network cut" and self.host(rank) == away:
                assert self.host(named) != away, text
            else:
                assert "the store at host0:29500" in text, text
        elif self.fault == "network cut" and self.host(rank) == away:
            # It notices that the store is silent; or its own timeout was shorter, and then the store cannot be asked.
            assert re.search("the store at host0:29500 (does not answer|is lost)", text), text
        elif self.fault in ("machine lost", "network cut"):
            assert self.host(named) == away, text
        elif self.fault in CALLS or self.fault == "missing":
            lines = [line for line in text.splitlines() if line.strip().startswith("rank")]
            (mine,) = [line for line in lines if f"rank {self.culprit} " in line or f"rank {self.culprit}:" in line]
            assert len(lines) == 2 and "test_simulation.py:" in mine, text
            assert ("did not come" in mine) == (self.fault == "missing"), text
        else:
            how = {
                "killed": "ended",
                "stopped": "gave no sign of life",
                "exception": "raised KeyError: 'of my own', at",
            }
            assert named == self.culprit and (f"on {away} {how[self.fault]}" in text or "did not come, on" in text), (
                text
            )


@pytest.mark.parametrize("seed", range(50))
def test_every_survivor_names_the_culprit_within_five_seconds(seed):
    chance = random.Random(seed)
    Job(seed, chance.choice([2, 3, 5, 8, 16, 24]), FAULTS[seed % len(FAULTS)]).run()


@pytest.mark.parametrize("fault", ["killed", "machine lost", "wrong size"])
def test_the_same_seed_gives_the_same_story(fault):
    stories = [Job(seed, 12, fault).run() for seed in (7, 7, 8)]
    assert stories[0] == stories[1] != stories[2]


def problem_of(job):
    """What is wrong in one job, (seed, ranks), in words; None if nothing is."""
    seed, ranks = job
    fault = FAULTS[seed % len(FAULTS)]
    try:
        Job(seed, ranks, fault).run()
    except AssertionError as error:
        return f"seed {seed}, {ranks} ranks, {fault}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="seeds at the same time")
    given, bad, start = parser.parse_args(), 0, time.monotonic()
    gc.disable()  # each job has a process of its own, and its garbage ends with that
    gc.freeze()
    seeds = [(seed, given.ranks) for seed in range(given.first, given.first + given.seeds)]
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=1) as pool:
        for done, problem in enumerate(pool.imap(problem_of, seeds), 1):
            if problem is not None:
                bad += 1
                print(problem, flush=True)
            if done % 50 == 0 or done == given.seeds:
                each = (time.monotonic() - start) / done
                print(f"{done - bad} of {done} seeds are good, {each:.2f} s each", flush=True)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
