"""The agent of a machine: meets the agents of the others, starts its processes, watches them, starts all again on a
failure.

Agents meet in a TCPStore that one of them holds. A generation is one attempt: in each, the agents number themselves,
tell how many processes they have, and start them. Whoever sees a failure ends the generation for all (the key
`over/<generation>`).
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from ..errors import DistError, DistNetworkError
from ..liveness import Member
from ..store import PrefixStore, TCPStore
from ..surroundings import REAL
from .errors import ChildFailedError, ProcessFailure, read


@dataclass
class Settings:
    """What an agent has to know; torchrun's command line says it."""

    command: list = field(default_factory=list)
    function: Callable | None = None  # in place of a command, with
    args: tuple = ()
    start_method: str = "spawn"  # of multiprocessing
    least: int = 1  # machines
    most: int = 1
    processes: int = 1
    node_rank: int | None = None  # None: in the order in which they come
    host: str = "127.0.0.1"
    port: int = 0
    job: str = "none"
    max_restarts: int = 0
    interval: float = 0.1  # seconds between two looks
    role: str = "default"
    log_dir: str | None = None
    redirects: str = "0"
    tee: str = "0"
    prefix: str | None = None  # of lines that are shown, with ${role_name}, ${rank}, ${local_rank}
    shown: list = field(default_factory=list)
    signals: list = field(default_factory=lambda: ["SIGTERM", "SIGINT"])
    patience: float = 30.0  # seconds between asking a process to end and killing it
    virtual: bool = False
    join: float = 600.0  # seconds to wait for machines
    last_call: float = 30.0  # seconds to wait for more of them once there are enough
    says: bool = False
    address: str | None = None


def meeting_place(backend, endpoint, most, host="127.0.0.1", port=None):
    """Host and port of the store of up to `most` machines.

    Args:
        backend: "static" or "c10d".
        endpoint: HOST, HOST:PORT or ''.
        host, port: where `endpoint` does not say it, of static machines.

    >>> meeting_place("c10d", "10.0.0.1", 2), meeting_place("static", "", 1)
    (('10.0.0.1', 29400), ('127.0.0.1', 29500))
    """
    given, _, number = endpoint.partition(":")
    if backend == "static":
        return given or host, int(number or (29500 if port is None else port))
    if backend == "c10d":
        return given or "127.0.0.1", int(number or (29400 if most > 1 else 0))
    raise ValueError(f"rdzv_backend {backend!r}: there are 'static' and 'c10d'")


class Stopped(BaseException):
    """A signal asks the agent to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class Agent:
    """Runs the processes of one machine until all have ended well, or too many attempts have failed."""

    def __init__(self, settings, around=REAL):
        self.around = around
        self.settings, self.store, self.member, self.processes = settings, None, None, []
        self.folder = around.make_folder("torchrun_")
        self.job = settings.job if settings.job != "none" else around.unique()[:12]
        self.restarts, self.mourned = 0, set()

    def say(self, text):
        """Tell the user, who asked for it."""
        if self.settings.says:
            print(f"torchrun: {text}", file=sys.stderr, flush=True)

    def results(self):
        """What the functions of this machine's processes gave, by rank."""
        return {one.rank: getattr(one.process, "value", None) for one in self.processes}

    def run(self):
        """Run the job; ChildFailedError when it fails for good."""
        before = {}
        try:
            for name in self.settings.signals:
                number = getattr(signal, name, None)
                if number is not None and threading.current_thread() is threading.main_thread():
                    before[number] = signal.signal(number, self.on_signal)
            self.open_store()
            generation = 0
            while self.attempt(generation) != "done":
                generation += 1
        except Stopped as stop:
            self.end_processes(stop.number)
            self.around.clean_up()
            raise SystemExit(128 + stop.number) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.end_processes(signal.SIGTERM)
            if self.member is not None:
                self.member.leave()
            if self.store is not None:
                self.store.close()
            self.around.remove_folder(self.folder)

    def on_signal(self, number, _):
        raise Stopped(number)

    # ---- meeting

    def open_store(self):
        """Hold the store, or come to it."""
        s = self.settings
        patience = timedelta(seconds=s.join)
        if s.node_rank in (None, 0):
            try:
                self.store = TCPStore(
                    s.host, s.port, is_master=True, timeout=patience, wait_for_workers=False, _around=self.around
                )
            except (DistNetworkError, OSError):
                if s.most == 1 or s.node_rank == 0:
                    raise
        self.holds = self.store is not None
        if not self.holds:
            self.store = TCPStore(s.host, s.port, timeout=patience, _around=self.around)
        self.keys = PrefixStore(f"torchrun/{s.job}", self.store)

    def meet(self, generation):
        """Number the machines of a generation: (which this is, how many processes each has)."""
        s, keys = self.settings, self.keys
        if s.most == 1:
            return 0, [s.processes]
        if s.node_rank is not None:
            number, count = s.node_rank, s.most
        else:
            number = keys.add(f"came/{generation}", 1) - 1
            count = self.close_the_door(generation)
            if number >= count:
                raise RuntimeError(f"{count} machines have begun without this one; --nnodes allows no more")
        if self.member is None:
            self.member = Member(self.keys, self.around.unique(), "another machine", self.around)
        keys.set(f"size/{generation}/{number}", str(s.processes))
        names = [f"size/{generation}/{i}" for i in range(count)]
        keys.wait(names, timedelta(seconds=s.join))
        return number, [int(size) for size in keys.multi_get(names)]

    def close_the_door(self, generation):
        """Wait for as many machines as there may be, or, once there are enough, for a while."""
        s, keys = self.settings, self.keys
        deadline, last_call = self.around.now() + s.join, None
        while not keys.check([f"closed/{generation}"]):
            came = keys.add(f"came/{generation}", 0)
            if came >= s.least and last_call is None:
                last_call = self.around.now() + s.last_call
            if came >= s.most or (last_call is not None and self.around.now() > last_call):
                keys.compare_set(f"closed/{generation}", "", str(min(came, s.most)))
            elif self.around.now() > deadline:
                wanted = f"{s.least} are needed (--nnodes {s.least}:{s.most})"
                raise RuntimeError(f"{came} machines came within {s.join:g} s, {wanted}")
            self.around.sleep(0.05)
        return int(keys.get(f"closed/{generation}"))

    # ---- an attempt

    def attempt(self, generation):
        """Start the processes and watch them: "done" or "again"."""
        s = self.settings
        number, sizes = self.meet(generation)
        self.say(f"attempt {generation}: machine {number} of {len(sizes)}, {s.processes} processes")
        first, world = sum(sizes[:number]), sum(sizes)
        self.processes = []
        for local in range(s.processes):
            self.processes.append(self.start(local, first + local, world, number, len(sizes), generation))
        pause = 0.005  # at first often: a short program is not kept waiting
        while True:
            self.around.sleep(pause)
            pause = min(2 * pause, s.interval if s.interval > 0 else 0.1)
            states = [p.process.poll() for p in self.processes]
            if any(states):
                return self.failed(generation)
            if all(code == 0 for code in states):
                self.close_logs()
                return self.finish(number, len(sizes), generation)
            if len(sizes) > 1 and (reason := self.is_over(generation)):
                return self.again(generation, reason)

    def is_over(self, generation):
        """Why the generation has ended, as another agent says; or a machine that is gone."""
        if self.keys.check([f"over/{generation}"]):
            return self.keys.get(f"over/{generation}").decode()
        gone = self.member.gone() if self.member is not None else {}
        new = [name for name in gone if name not in self.mourned]
        if None in gone:
            raise RuntimeError(gone[None])
        if new:
            self.mourned.update(new)
            words = f"a machine is gone: the agent {gone[new[0]]}"
            self.keys.compare_set(f"over/{generation}", "", words)
            return words
        return None

    def failed(self, generation):
        """A process has failed: end the others."""
        first = [p for p in self.processes if p.process.poll()]
        failures = {p.rank: self.failure(p) for p in first}
        self.end_processes(signal.SIGTERM)
        for one in self.processes:
            if one.rank not in failures and one.process.returncode not in (0, -signal.SIGTERM):
                failures[one.rank] = self.failure(one)
        error = ChildFailedError(self.name(), failures)
        if self.settings.most > 1:
            self.keys.compare_set(f"over/{generation}", "", f"rank {error.get_first_failure()[0]} failed")
        return self.again(generation, error)

    @staticmethod
    def failure(one):
        code, pid = one.process.returncode, one.process.pid
        return ProcessFailure(one.local, pid, code, one.errors, one.rank, message=read(one.errors))

    def name(self):
        """What the job's program is called."""
        if self.settings.function is not None:
            return getattr(self.settings.function, "__qualname__", type(self.settings.function).__qualname__)
        words = [word for word in self.settings.command[1:] if not word.startswith("-")]
        return words[0] if words else self.settings.command[0]

    def again(self, generation, reason):
        """Begin again, if that is allowed."""
        self.end_processes(signal.SIGTERM)
        self.around.clean_up()
        if self.restarts >= self.settings.max_restarts:
            if isinstance(reason, ChildFailedError):
                raise reason
            raise RuntimeError(f"the job has failed on another machine: {reason}")
        self.restarts += 1
        self.say(f"attempt {generation} has failed; {self.settings.max_restarts - self.restarts} more may fail")
        return "again"

    def finish(self, number, count, generation):
        """All processes here have ended well; wait for those of the other machines."""
        if count == 1:
            return "done"
        self.keys.set(f"done/{generation}/{number}", "")
        names = [f"done/{generation}/{i}" for i in range(count)]
        while not self.keys.check(names):
            if reason := self.is_over(generation):
                return self.again(generation, reason)
            self.around.sleep(0.05)
        with contextlib.suppress(DistError):
            self.keys.barrier(f"end/{generation}", count, timedelta(seconds=5))  # the holder of the store goes last
        return "done"

    # ---- processes

    def start(self, local, rank, world, node, nodes, generation):
        """Start a process with what it must know in its environment."""
        s = self.settings
        errors = os.path.join(self.folder, f"error_{generation}_{local}.json")
        environment = {
            **os.environ,
            "RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": 0 if s.virtual else local, "LOCAL_WORLD_SIZE": s.processes,
            "GROUP_RANK": node, "GROUP_WORLD_SIZE": nodes, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": world,
            "ROLE_NAME": s.role, "MASTER_ADDR": (s.address or s.host) if self.holds else s.host,
            "MASTER_PORT": self.store.port, "TORCHELASTIC_RESTART_COUNT": self.restarts,
            "TORCHELASTIC_MAX_RESTARTS": s.max_restarts, "TORCHELASTIC_RUN_ID": self.job,
            "TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_ERROR_FILE": errors,
        }  # fmt: skip
        if s.processes > 1 and "OMP_NUM_THREADS" not in os.environ:
            environment["OMP_NUM_THREADS"] = 1
        if s.virtual:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            mine = visible[local] if len(visible) > local and visible[local] else local
            environment["CUDA_VISIBLE_DEVICES"] = mine
        texts = {key: str(value) for key, value in environment.items()}
        return self.around.process(s, local, rank, errors, texts, generation)

    def end_processes(self, number):
        """Ask the processes to end, and after a while make them."""
        running = [p for p in self.processes if p.process.poll() is None]
        for one in running:
            with contextlib.suppress(OSError):
                one.process.send_signal(number)
        deadline = self.around.now() + self.settings.patience
        for one in running:
            try:
                one.process.wait(max(0.0, deadline - self.around.now()))
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
        self.close_logs()

    def close_logs(self):
        """What the processes printed is in its files."""
        for one in self.processes:
            one.close()
