"""The engine between GPUs: NCCL. An exchange is put on a stream of its own, and whoever waits for it makes the current
stream wait: the program goes on. A thread beside watches that the others do the same, and frees those who wait in
vain."""

import os
import threading
import time
from datetime import timedelta

from ... import _native
from ..errors import DistBackendError, DistError
from . import COPIED, Kind

LOOK = 0.25  # seconds between two looks of the watching thread
PATIENCE = 1.0  # seconds after which an exchange is looked into


def is_available():
    """Whether NCCL and a GPU are there."""
    from ... import cuda

    return cuda.is_available() and not _native.distributed.nccl_problem()


class Exchange:
    """An exchange on a stream."""

    __slots__ = ("begun", "event", "fingerprint", "record", "source", "waits")

    def __init__(self, fingerprint, source, waits, record):
        self.event, self.begun, self.record = None, time.monotonic(), record
        self.fingerprint, self.source, self.waits = fingerprint, source, waits


class Nccl:
    """A group of processes with a GPU each. The communicator is made at the first exchange.

    Args:
        store: of this group alone.
        rank, size: which process this is, and of how many.
        device: the GPU; by default that of the first tensor.
    """

    sums_lists, copied = False, COPIED

    def __init__(self, store, rank, size, device=None):
        self.store, self.rank, self.size, self.device = store, rank, size, device
        self.communicator = self.stream = self.together = None
        self.watch, self.lock = None, threading.Lock()
        self.aborted = False

    # ---- meeting

    def _start(self, device):
        from ... import cuda

        if _native.distributed.nccl_problem():
            raise DistBackendError(
                "init_process_group: backend 'nccl' needs NCCL, and it is not here "
                f"({_native.distributed.nccl_problem()}). `pip install cresset[cuda]` brings it"
            )
        os.environ.setdefault("NCCL_RUNTIME_CONNECT", "0")  # connections when the group is made, not inside of a call
        self.device = device
        if self.rank == 0:
            self.store.set("nccl/id", _native.distributed.nccl_unique_id())
        self.store.wait(["nccl/id"], timedelta(minutes=5))
        name = self.store.get("nccl/id")
        self.store.barrier("nccl/here", self.size, timedelta(minutes=5))
        self.communicator = _native.distributed.Communicator(name, self.rank, self.size, self.device.index)
        self.stream = cuda.Stream(self.device)
        self.nothing = _native_zeros(self.device)

    def place(self):
        """The GPU of this process in the group."""
        from ... import cuda

        return self.device or _native.device("cuda", cuda.current_device())

    def started_on(self, device):
        """Make the communicator, if there is none yet."""
        if self.communicator is None and not self.aborted:
            self._start(device if device is not None and device.type == "cuda" else self.place())

    def watched_by(self, group):
        """Let a thread look after the exchanges of a group."""
        self.watch = Watch(self, group)

    # ---- exchanges

    def begin(
        self,
        kind,
        source,
        target,
        reduction=0,
        root=0,
        tag=0,
        fingerprint=0,
        sent=(),
        received=(),
        waits=False,
        record=None,
    ):
        """Put an exchange on the stream.

        Args:
            tag: NCCL has none: what two processes send to each other comes in the order in which it was sent.
            waits: the program itself waits for it, not only its stream: what comes is for the CPU.
            record: what messages say of it.
        """
        from ... import cuda

        if self.aborted:
            raise DistBackendError("NCCL: the communicator of this group was aborted; destroy the group and begin anew")
        some = source if source is not None else target
        self.started_on(None if some is None else some.device)
        if kind == Kind.BARRIER:
            source = target = some = self.nothing
        if some.device != self.device:
            raise ValueError(f"NCCL: a tensor on {some.device} in a group whose exchanges are on {self.device}")
        count = some.numel()
        if kind in (Kind.ALL_GATHER, Kind.GATHER):
            count = source.numel()
        elif kind in (Kind.SCATTER, Kind.REDUCE_SCATTER):
            count = target.numel()
        between_two = kind in (Kind.SEND, Kind.RECEIVE)
        exchange = Exchange(None if between_two else fingerprint, root, waits or kind == Kind.BARRIER, record)
        self.stream.wait_stream(cuda.current_stream(self.device))
        self.communicator.begin(
            int(kind), 0 if source is None else source.data_ptr(), 0 if target is None else target.data_ptr(), count,
            some.dtype, reduction, root, list(sent), list(received), self.stream.cuda_stream,
        )  # fmt: skip
        for tensor in (source, target):
            if tensor is not None:
                tensor.record_stream(self.stream)
        if self.together is None:
            self._began(exchange)
        else:
            self.together.append(exchange)
        return exchange

    def _began(self, exchange):
        exchange.event = self.stream.record_event()
        if self.watch is not None:
            self.watch.add(exchange)

    def group_start(self, device):
        """Exchanges until group_end begin together, so that sends and receives may cross."""
        self.started_on(device)
        self.together = []
        _native.distributed.nccl_group_start()

    def group_end(self):
        if self.together is None:
            return
        begun, self.together = self.together, None
        _native.distributed.nccl_group_end()
        for exchange in begun:
            self._began(exchange)

    def poll(self, exchange, microseconds):
        """What became of an exchange. With no time to wait: whether it is done. Else the current stream waits for it,
        and for the program it is done; where the program itself waits, it is asked for some time."""
        from ... import cuda

        if self.watch is not None and self.watch.problem is not None:
            raise DistBackendError(self.watch.problem)
        if microseconds == 0 or exchange.waits:
            end = time.monotonic() + microseconds / 1e6
            while not exchange.event.query():
                if time.monotonic() >= end:
                    return None
                time.sleep(0)
            return "done"
        cuda.current_stream(self.device).wait_event(exchange.event)
        return "done"

    def abandon(self):
        """Free whoever waits; nothing is exchanged any more."""
        with self.lock:
            if not self.aborted and self.communicator is not None:
                self.aborted = True
                self.communicator.abort()

    def release(self):
        """The end of the group: what is on the stream still happens."""
        if self.watch is not None:
            self.watch.open = False
        if self.communicator is not None and not self.aborted:
            self.stream.synchronize()
            self.communicator = None


def _native_zeros(device):
    import cresset

    return cresset.zeros(1, device=device)


class Watch:
    """Looks after the exchanges of a group: compares what the processes do, names those who are gone, and keeps to the
    timeout. What it finds ends the group, and the next call raises it.

    Args:
        engine: a Nccl.
        group: the ProcessGroup, which knows the words.
    """

    KEPT = 256

    def __init__(self, engine, group):
        self.engine, self.group, self.pending, self.done = engine, group, [], {}
        self.problem, self.open, self.lock, self.said = None, True, threading.Lock(), None
        self.thread = None

    def add(self, exchange):
        with self.lock:
            self.pending.append(exchange)
            if exchange.fingerprint is not None:
                self.done[exchange.record.number] = (exchange.fingerprint, exchange.record)
            while len(self.done) > self.KEPT:
                del self.done[next(iter(self.done))]
        if self.thread is None:
            self.thread = threading.Thread(target=self.run, name="cresset-nccl-watch", daemon=True)
            self.thread.start()

    def run(self):
        while self.open and self.problem is None:
            time.sleep(LOOK)
            try:
                self.look()
            except DistError as error:
                if self.open:
                    self.end(f"the store cannot be asked: {error}")
            except RuntimeError:
                return  # the process ends

    def look(self):
        with self.lock:
            while self.pending and self.pending[0].event.query():
                self.pending.pop(0)
            oldest = self.pending[0] if self.pending else None
        if (number := self.different()) is not None:
            self.end(self.group._different(self.done[number][1]))
        elif oldest is not None and (waited := time.monotonic() - oldest.begun) > PATIENCE:
            error = self.engine.communicator.error() if not self.engine.aborted else ""
            if error:
                self.end(f"NCCL says {error} in {oldest.record}")
            try:
                limit = self.group._timeout.total_seconds()
                self.group._look_around(oldest.record, waited, limit, (), self.engine, oldest)
            except DistBackendError as problem:
                self.end(str(problem))

    def different(self):
        """The number of a call in which the processes did not do the same, or None."""
        with self.lock:
            mine = {number: fingerprint for number, (fingerprint, _) in self.done.items()}
        store, engine = self.group._store, self.engine
        text = " ".join(f"{number}:{fingerprint}" for number, fingerprint in mine.items())
        if text == self.said and not self.pending:
            return None
        if text != self.said:
            store.set(f"nccl/did/{engine.rank}", text)
            self.said = text
        keys = [f"nccl/did/{rank}" for rank in range(engine.size) if rank != engine.rank]
        for key in keys:
            if store.check([key]):
                for pair in store.get(key).decode().split():
                    number, fingerprint = map(int, pair.split(":"))
                    if mine.get(number, fingerprint) != fingerprint:
                        return number
        return None

    def end(self, problem):
        """Nobody waits any longer."""
        if self.problem is None:
            self.problem = problem
            self.group._give_up(problem)
            self.engine.abandon()
