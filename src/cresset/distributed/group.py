"""Groups of processes: who is in them, what carries their exchanges, and what they say when one of them fails."""

import contextlib
import os
import sys
import zlib
from collections import deque
from datetime import timedelta

from .. import _native
from .engines import Kind
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from .store import PrefixStore, TCPStore, wire
from .work import Work

DEFAULT_TIMEOUT = timedelta(minutes=30)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MASK = (1 << 61) - 1
HEARTBEAT = 0.5  # seconds


class Member:
    """This process among all, as the store knows it: a connection whose end is noticed, and a thread that gives signs
    of life.
    """

    def __init__(self, store, rank):
        self.store, self.rank, self.connection, self.heartbeat = store, rank, None, None
        self.owner = os.getpid()
        base = store
        while isinstance(base, PrefixStore):
            base = base.underlying_store
        if isinstance(base, TCPStore):
            self.connection = base.member(str(rank))
            alive = wire.pack([b"alive", b"0", b"0"])
            self.heartbeat = _native.distributed.Heartbeat(self.connection._connection.fileno(), alive, HEARTBEAT)
        self.base = base

    def gone(self):
        """The ranks that are gone, and how."""
        if self.connection is None:
            return {}
        try:
            if not self.base.check(["cresset/gone"]):
                return {}
            names = [key for key in self.base.list_keys() if key.startswith("cresset/gone/")]
            return {int(name.rsplit("/", 1)[1]): self.base.get(name).decode() for name in names}
        except DistNetworkError:
            return {0: "ended (it held the store)"}

    def leave(self):
        self.heartbeat = None
        if self.connection is not None and self.owner == os.getpid():
            with contextlib.suppress(DistError):
                self.connection._exchange("leave")
            self.connection.close()


def place():
    """The line of the program that called."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return (frame.f_code, frame.f_lineno) if frame is not None else None


class Record:
    """An exchange that this process began, for messages."""

    __slots__ = ("at", "dtype", "kind", "number", "shape", "words")

    def __init__(self, number, kind, tensor, words, at):
        self.number, self.kind, self.words, self.at = number, kind, words, at
        self.shape, self.dtype = (None, None) if tensor is None else (tensor.shape, tensor.dtype)

    def __str__(self):
        what = f"{list(self.shape)} of {self.dtype}" if self.shape is not None else ""
        where = f", at {self.at[0].co_filename}:{self.at[1]}" if self.at else ""
        return f"{self.kind}({', '.join(filter(None, [what, self.words]))}){where}"


class ProcessGroup:
    """Processes that exchange tensors with each other, in the same order.

    `init_process_group` and `new_group` make them.
    """

    class BackendType:
        """The engines by PyTorch's names."""

        GLOO, NCCL, MPI, CUSTOM, UNDEFINED = "gloo", "nccl", "mpi", "custom", "undefined"

    def __init__(self, engine, ranks, store, name, backend, timeout, description, member, device_id=None):
        self._engine, self._ranks, self._store, self._name, self._backend = engine, list(ranks), store, name, backend
        self._timeout, self._description, self._member = timeout, description, member
        self.bound_device_id = device_id
        self._count = 0
        self._records = deque(maxlen=64)
        self._kept = []  # what an abandoned exchange may still write to
        self._broken = None

    # ---- who

    def rank(self):
        """The number of this process in the group."""
        return self._engine.rank

    def size(self):
        """How many processes there are."""
        return self._engine.size

    def name(self):
        """The engine's name."""
        return self._backend

    @property
    def group_name(self):
        """The group's own name, the same in all processes."""
        return self._name

    @property
    def group_desc(self):
        """What the program said it is for."""
        return self._description

    def _get_backend_name(self):
        return self._backend

    def get_group_store(self):
        """The store of the group."""
        return self._store

    def _set_default_timeout(self, timeout):
        self._timeout = timeout

    def __repr__(self):
        return f"<torch.distributed.ProcessGroup {self._name!r}: rank {self.rank()} of {self.size()}, {self._backend}>"

    # ---- exchanges

    def _begin(
        self, kind, name, source, target, finish=None, result=(), reduction=0, root=0, words="", about=None, **more
    ):
        """Begin an exchange; a Work.

        Args:
            kind: an engines.Kind.
            name: what the program calls.
            source, target: contiguous CPU tensors, or None.
            words: what else must be the same everywhere, for messages.
            about: the tensor that messages describe.
        """
        if self._broken is not None:
            raise DistBackendError(
                f"{name}: the group {self._name!r} is broken by an earlier error ({self._broken}); destroy it and "
                "begin anew"
            )
        about = about if about is not None else source if source is not None else target
        if kind not in (Kind.SEND, Kind.RECEIVE):  # these are between two: the others know nothing of them
            self._count += 1
        record = Record(self._count, name, about, words, place())
        self._records.append(record)
        size = -1 if about is None else about.numel()
        dtype = -1 if about is None else about.dtype.itemsize * 64 + DTYPE_NUMBERS[about.dtype]
        fingerprint = hash((self._count, int(kind), size, dtype, reduction, root, hash_of(words))) & MASK
        exchange = self._engine.begin(kind, source, target, reduction, root, fingerprint=fingerprint, **more)
        engine, keeps = self._engine, (source, target)

        def poll(microseconds):
            state = engine.poll(exchange, microseconds)
            if state is None:
                return False
            if state == "done":
                return True
            self._kept.append(keeps)
            raise self._break(name, self._different(record) if state == "different" else exchange.problem)

        def alarm(waited, limit):
            self._look_around(record, waited, limit, keeps)

        def sender():
            return self._ranks[exchange.source]

        return Work(poll, finish, result, keeps, alarm, self._timeout.total_seconds(), sender)

    def _run(self, work, async_op):
        if async_op:
            return work
        work.wait()
        return None

    # ---- what goes wrong

    def _break(self, name, problem):
        self._broken = problem
        self._engine.abandon()
        return DistBackendError(f"{name}: {problem}")

    def _say(self, record):
        """Tell the others what this process does."""
        import json
        import socket

        text = {"rank": self._ranks[self.rank()], "host": socket.gethostname(), "what": str(record)}
        self._store.set(f"said/{record.number}/{self.rank()}", json.dumps(text))

    def _heard(self, record, seconds):
        """What the others said, by rank of the group; None of those who say nothing."""
        import json

        heard = {}
        for rank in range(self.size()):
            key = f"said/{record.number}/{rank}"
            try:
                self._store.wait([key], timedelta(seconds=seconds))
                heard[rank] = json.loads(self._store.get(key))
            except DistStoreError:
                heard[rank] = None
        return heard

    def _different(self, record):
        """The words for processes that do not do the same."""
        try:
            self._say(record)
            heard = self._heard(record, 2.0)
            with contextlib.suppress(DistStoreError):  # whoever holds the store stays until all have read
                self._store.barrier(f"heard/{record.number}", self.size(), timedelta(seconds=2))
        except DistError as error:
            return f"the ranks do not call the same (this one: {record}); the store cannot be asked: {error}"
        by_call = {}
        for rank, said in heard.items():
            words = said["what"] if said else "nothing yet"
            host = f" on {said['host']}" if said else ""
            by_call.setdefault(words, []).append(f"{self._ranks[rank]}{host}")
        lines = [f"rank{'s' if len(r) > 1 else ''} {', '.join(r)}: {words}" for words, r in by_call.items()]
        return (
            f"the ranks of group {self._name!r} do not call the same as their call number {record.number}:\n  "
            + "\n  ".join(lines)
        )

    def _look_around(self, record, waited, limit, keeps):
        """While a wait takes long: is somebody gone, is it too late?"""
        gone = {rank: how for rank, how in self._member.gone().items() if rank in self._ranks} if self._member else {}
        if gone:
            self._kept.append(keeps)
            who = "; ".join(f"rank {rank} {how}" for rank, how in sorted(gone.items()))
            raise self._break(record.kind, f"{who}. This rank ({self._ranks[self.rank()]}) waits in {record}")
        if limit and waited >= limit:
            self._kept.append(keeps)
            with contextlib.suppress(DistError):
                self._say(record)
            try:
                heard = self._heard(record, 0.5)
            except DistError:
                heard = {}
            missing = [str(self._ranks[rank]) for rank, said in heard.items() if said is None]
            others = (
                f"rank{'s' if len(missing) > 1 else ''} {', '.join(missing)} did not come"
                if missing
                else "the others wait, too"
            )
            raise self._break(
                record.kind,
                f"Timed out after {waited:.1f} s: {others}. Rank {self._ranks[self.rank()]} waits in {record}",
            )


DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(
    getattr(_native, name) for name in (
        "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool",
        "bfloat16", "uint16", "uint32", "uint64",
    )
)}  # fmt: skip


def hash_of(words):
    """A number for text that is the same in every process."""
    return zlib.crc32(words.encode()) if words else 0


ProcessGroup.__module__ = "torch.distributed.distributed_c10d"
