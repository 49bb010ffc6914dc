"""Who lives: each process of a job tells the store so, and hears at once who is gone.

A member has one connection to the store. What it says there, again and again, is the call of the program that it is in;
what comes back are echoes, and the names of members that are gone. When the echoes stop, the store is out of reach.
"""

import contextlib
import functools
import os
from datetime import timedelta

from .errors import DistBackendError, DistError, DistStoreError
from .store import PrefixStore, TCPStore, wire
from .store.server import SILENCE
from .surroundings import REAL

HEARTBEAT = 0.5  # seconds
SLICE = 0.5  # seconds between two looks while members meet


@functools.lru_cache(maxsize=256)
def _more(dtype, words):
    return ", ".join(filter(None, ["" if dtype is None else str(dtype), words]))


class Member:
    """This process among those of its job.

    Args:
        store: the job's; processes that see it under the same prefix are of one job. Only a TCPStore notices who is
            gone.
        name: of this process, which no other of the job has.
        holder: who holds the store, for messages.
    """

    def __init__(self, store, name, holder="the process that holds it", around=REAL):
        self.connection, self.heartbeat, self.holder, self.around = None, None, holder, around
        self.owner, self.received, self.known = os.getpid(), bytearray(), {}
        prefixes = []
        while isinstance(store, PrefixStore):
            prefixes.append(store._prefix)
            store = store.underlying_store
        if isinstance(store, TCPStore):
            self.scope = "/".join(reversed(prefixes)).encode()
            self.connection = TCPStore(store.host, store.port, timeout=timedelta(seconds=10), _around=around)
            self.connection._exchange("member", [self.scope, name.encode()], [around.hostname().encode()])
            before = b"".join(wire.LENGTH.pack(len(field)) + field for field in (b"alive", b"0", b"0"))
            self.heartbeat = around.heartbeat(self.connection._connection, before, HEARTBEAT)
            around.at_exit(self.tell_why)

    def note(self, record):
        """What the program does now, for those who will ask."""
        if self.heartbeat is not None:
            file, line = (record.at[0].co_filename, record.at[1]) if record.at else ("?", 0)
            self.heartbeat.note(record.number, record.kind, record.shape, _more(record.dtype, record.words), file, line)

    def gone(self):
        """Who is gone, and how, in the order in which it became known; None in place of a name is the store."""
        if self.heartbeat is None:
            return {}
        if heard := self.heartbeat.heard():
            self.received += heard
            while (message := wire.take(self.received)) is not None:
                if message[0] == b"gone":
                    self.known.setdefault(message[1].decode(), message[2].decode(errors="replace"))
        if self.known or 0 <= (silence := self.heartbeat.silence()) <= SILENCE:
            return self.known
        where = f"the store at {self.connection.host}:{self.connection.port}"
        if silence < 0:
            return {None: f"{where} is gone: {self.holder} has ended"}
        return {None: f"{where} does not answer for {silence:.1f} s: {self.holder} is stopped, or the network is cut"}

    def meet(self, store, name, size, timeout):
        """Wait until `size` members have come here. If one of them is gone, nobody waits for it.

        Args:
            store: the job's.
            name: of this meeting, which happens once.
            timeout: how long to wait, a timedelta.
        """
        deadline = self.around.now() + timeout.total_seconds()
        if store.add(f"{name}/came", 1) == size:
            store.set(f"{name}/all", "")
        while True:
            try:
                return store.wait([f"{name}/all"], timedelta(seconds=SLICE))
            except DistStoreError:
                if gone := self.gone():
                    who, how = next(iter(gone.items()))
                    subject = how if who is None else f"rank {who} {how}"
                    raise DistBackendError(
                        f"init_process_group: {subject}, before all {size} processes had met"
                    ) from None
                if self.around.now() > deadline:
                    came = store.add(f"{name}/came", 0)
                    raise DistStoreError(
                        f"init_process_group: {came} of {size} processes came within {timeout.total_seconds():g} s"
                    ) from None

    def whereabouts(self, store):
        """{name: where it was when it last gave a sign of life}, of all members, as the store knows it."""
        if self.connection is None:
            return {}
        while isinstance(store, PrefixStore):
            store = store.underlying_store
        names = iter(store.request("whereabouts", [self.scope]))
        return {name.decode(): text.decode(errors="replace") for name, text in zip(names, names, strict=True)}

    def leave(self, why=""):
        """Go, in good order; or say what went wrong."""
        self.heartbeat = None  # ends its thread
        if self.connection is not None and self.owner == os.getpid():
            connection, self.connection = self.connection, None
            self.around.not_at_exit(self.tell_why)
            with contextlib.suppress(OSError, DistError):
                connection._connection.settimeout(2.0)
                connection._connection.sendall(wire.pack([b"leave", b"0", b"0", why.encode()]))
                while connection._connection.recv(4096):  # until the store, which has read it, hangs up
                    pass
            connection.close()

    def tell_why(self):
        """The process ends without having left: what it raised is for the others to know."""
        error = self.around.last_error()
        if error is not None and self.owner == os.getpid():
            last = error.__traceback__
            while last is not None and last.tb_next is not None:
                last = last.tb_next
            at = f", at {last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last is not None else ""
            words = str(error).split("\n")[0][:200]
            self.leave(f"raised {type(error).__name__}: {words}{at}")
