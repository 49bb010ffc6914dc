"""Groups of processes: who is in them, what carries their exchanges, and what they say when one of them fails."""

import contextlib
import os
import sys
import zlib
from collections import deque
from datetime import timedelta

from .. import _native
from .engines import Kind
from .errors import DistBackendError, DistError, DistStoreError
from .surroundings import REAL
from .work import Work

DEFAULT_TIMEOUT = timedelta(minutes=30)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MASK = (1 << 61) - 1
CPU = _native.device("cpu")
SAYS = 2.0  # seconds in which the others say what they do, when something is wrong


# Exchanges on their way that the program has let go of, as when Ctrl-C ends a wait: the others still come, and then
# their memory is written to. Each is (engine, exchange, finish, what it keeps).
LEFT = []


def end_what_was_left():
    """Let go of the exchanges of LEFT that are done."""
    exchanges, LEFT[:] = LEFT[:], []
    for engine, exchange, finish, keeps in exchanges:
        try:
            state = engine.poll(exchange, 0)
        except DistError:
            state = "failed"
        if state == "done" and finish is not None:
            finish()
        elif state != "done":
            LEFT.append((engine, exchange, finish, keeps))


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

    def __init__(
        self, engine, ranks, store, name, backend, timeout, description, member, device_id=None, around=REAL, gpu=None
    ):
        self._engine, self._store, self._name, self._backend = engine, store, name, backend
        self._ranks = (
            ranks if isinstance(ranks, range) else list(ranks)
        )  # a range costs nothing, however many there are
        self._timeout, self._description, self._member, self._around = timeout, description, member, around
        self.bound_device_id, self._gpu = device_id, gpu
        if gpu is not None:
            gpu.watched_by(self)
        self._count = 0
        self._records = deque(maxlen=64)
        self._kept = []  # what an abandoned exchange may still write to
        self._broken = None  # or why nothing can be exchanged any more, in words

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

    def _place(self, device):
        """Where the elements of a tensor on `device` are exchanged."""
        if self._gpu is None:
            return CPU
        if device.type == "cuda":
            return device
        return CPU if self._gpu is not self._engine else self._gpu.place()

    def _begin(
        self, kind, name, source, target, finish=None, result=(), reduction=0, root=0, words="", about=None, **more
    ):
        """Begin an exchange; a Work.

        Args:
            kind: an engines.Kind.
            name: what the program calls.
            source, target: contiguous tensors where _place says, or None.
            words: what else must be the same everywhere, for messages.
            about: the tensor that messages describe.
        """
        if self._broken is not None:
            raise DistBackendError(f"{name}: the group {self._name!r} {self._broken}")
        if LEFT:
            end_what_was_left()
        about = about if about is not None else source if source is not None else target
        if kind not in (Kind.SEND, Kind.RECEIVE):  # these are between two: the others know nothing of them
            self._count += 1
        record = Record(self._count, name, about, words, place())
        self._records.append(record)
        if self._member is not None:
            self._member.note(record)
        size = -1 if about is None else about.numel()
        dtype = -1 if about is None else about.dtype.itemsize * 64 + DTYPE_NUMBERS[about.dtype]
        fingerprint = hash((self._count, int(kind), size, dtype, reduction, root, hash_of(words))) & MASK
        some, engine = source if source is not None else target, self._engine
        if (
            self._gpu is not None
            and not isinstance(some, list)
            and (engine is self._gpu or (some is not None and some.is_cuda))
        ):
            engine = self._gpu
            more |= {"waits": any(not tensor.is_cuda for tensor in result), "record": record}
        exchange = engine.begin(kind, source, target, reduction, root, fingerprint=fingerprint, **more)
        keeps = (source, target)

        def poll(microseconds):
            state = engine.poll(exchange, microseconds)
            if state is None:
                return False
            if state == "done":
                return True
            self._kept.append(keeps)
            problem = self._different(record) if state == "different" else self._failed(record, exchange)
            raise self._break(name, problem, engine)

        def alarm(waited, limit):
            self._look_around(record, waited, limit, keeps, engine, exchange)

        def sender():
            return self._ranks[exchange.source]

        def left(finish, keeps):
            LEFT.append((engine, exchange, finish, keeps))

        return Work(poll, finish, result, keeps, alarm, self._timeout.total_seconds(), sender, self._around.now, left)

    def _run(self, work, async_op):
        if async_op:
            return work
        work.wait()
        return None

    # ---- what goes wrong

    def _give_up(self, problem):
        """Nothing is exchanged any more."""
        self._broken = f"is broken by an earlier error ({problem}); destroy it and begin anew"

    def _break(self, name, problem, engine):
        self._give_up(problem)
        engine.abandon()
        return DistBackendError(f"{name}: {problem}")

    def _me(self):
        return f"rank {self._ranks[self.rank()]} on {self._around.hostname()}"

    def _said(self, record):
        """What each rank does, in lines. Every rank tells the store; the first that comes here reads it for all."""
        import json

        store, number = self._store, record.number
        store.hurry(SAYS)
        what = json.dumps({"host": self._around.hostname(), "what": str(record)})
        store.set(f"said/{number}/{self.rank()}", what)
        if store.add(f"asked/{number}", 1) > 1:
            store.wait([f"answer/{number}"], timedelta(seconds=SAYS + 1))
            return store.get(f"answer/{number}").decode()
        keys = [f"said/{number}/{rank}" for rank in range(self.size())]
        with contextlib.suppress(DistStoreError):
            store.wait(keys, timedelta(seconds=SAYS))
        there = store._each(keys)
        heard = iter(store.multi_get([key for key, is_there in zip(keys, there, strict=True) if is_there]))
        last = {} if all(there) or self._member is None else self._member.whereabouts(store)
        by_call = {}
        for rank, is_there in enumerate(there):
            said = json.loads(next(heard)) if is_there else None
            name = str(self._ranks[rank])
            words = said["what"] if said else "did not come, " + last.get(name, "and is not known to the store")
            by_call.setdefault(words, []).append(f"{name} on {said['host']}" if said else name)
        lines = []
        for words, ranks in by_call.items():
            many = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
            lines.append(f"rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks[:8])}{many}: {words}")
        answer = "\n  ".join(lines)
        store.set(f"answer/{number}", answer)
        return answer

    def _different(self, record):
        """The words for processes that do not do the same."""
        try:
            lines = self._said(record)
            with contextlib.suppress(DistStoreError):  # whoever holds the store stays until all have read
                self._store.barrier(f"heard/{record.number}", self.size(), timedelta(seconds=1))
        except DistError as error:
            return f"the ranks do not call the same ({self._me()}: {record}); the store cannot be asked: {error}"
        return (
            f"the ranks of group {self._name!r} do not call the same as their call number {record.number}:\n  {lines}"
        )

    def _failed(self, record, exchange):
        """The words for an exchange that the engine gave up: if somebody is gone, that is why."""
        for _ in range(10):
            if words := self._who_is_gone(record):
                return words
            self._around.sleep(0.05)
        return f"{exchange.problem}. {self._me()} was in {record}"

    def _who_is_gone(self, record):
        """The words for members of the group that are gone; '' if all are there."""
        gone = self._member.gone() if self._member is not None else {}
        if not gone:
            return ""
        before = self._records[-2] if len(self._records) > 1 else None
        last = f" The last call that came through is number {before.number}, {before}." if before else ""
        if None in gone:
            return f"{gone[None]}.{last} {self._me()} waits in {record}"
        here = [(int(name), how) for name, how in gone.items() if int(name) in self._ranks]
        if not here:
            return ""
        (first, how), others = here[0], sorted(rank for rank, _ in here[1:])
        more = f" (then rank{'s' if len(others) > 1 else ''} {', '.join(map(str, others[:8]))})" if others else ""
        return f"rank {first} {how}{more}.{last} {self._me()} waits in {record}"

    def _look_around(self, record, waited, limit, keeps, engine, exchange):
        """While a wait takes long: is somebody gone, is it too late?"""
        words = self._who_is_gone(record)
        if words and engine.poll(exchange, 0 if engine is self._gpu else 20_000) == "done":
            return  # whoever is gone had done its part
        if words:
            self._kept.append(keeps)
            raise self._break(record.kind, words, engine)
        if limit and waited >= limit:
            self._kept.append(keeps)
            try:
                lines = "\n  " + self._said(record)
            except DistError as error:
                lines = f" {self._me()} waits in {record}; the store cannot be asked: {error}"
            raise self._break(record.kind, f"Timed out after {waited:.1f} s:{lines}", engine)


DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(
    getattr(_native, name) for name in (
        "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool",
        "bfloat16", "uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
        "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)}  # fmt: skip


def hash_of(words):
    """A number for text that is the same in every process."""
    return zlib.crc32(words.encode()) if words else 0


ProcessGroup.__module__ = "torch.distributed.distributed_c10d"
