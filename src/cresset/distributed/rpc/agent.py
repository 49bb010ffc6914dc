"""The workers of this job, and the connections between them.

Each worker listens on a port of its own, whose address and a secret are in the store. A message is a list of fields:
what it is, its number, then data. A connection that does not begin with the secret is closed."""

import builtins
import contextlib
import hmac
import itertools
import secrets
import socket
import threading
import traceback
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from ...futures import Future
from ..store import PrefixStore, wire
from . import names

WorkerInfo = namedtuple("WorkerInfo", ["id", "name"])
WorkerInfo.__doc__ = "A worker: its number and name."


class Connection:
    """Messages over a socket; several threads may send."""

    def __init__(self, end):
        self.end, self.lock, self.buffer = end, threading.Lock(), bytearray()
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, fields):
        with self.lock:
            self.end.sendall(wire.pack(fields))

    def receive(self):
        """The next message; None at the end."""
        while (message := wire.take(self.buffer)) is None:
            data = self.end.recv(1 << 20)
            if not data:
                return None
            self.buffer += data
        return message

    def close(self):
        with contextlib.suppress(OSError):
            self.end.shutdown(socket.SHUT_RDWR)
        self.end.close()


class Agent:
    """This process among the workers.

    Args:
        store: where they meet.
        options: TensorPipeRpcBackendOptions.
    """

    def __init__(self, store, name, rank, world_size, options):
        self.store, self.rank, self.size, self.timeout = (
            PrefixStore("rpc", store),
            rank,
            world_size,
            options.rpc_timeout,
        )
        self.info, self.numbers, self.lock = WorkerInfo(rank, name), itertools.count(), threading.Lock()
        self.calls = ThreadPoolExecutor(options.num_worker_threads, thread_name_prefix="cresset-rpc")
        self.values, self.waiting, self.outgoing, self.incoming = {}, {}, {}, []
        self.open = True
        if rank == 0:
            self.store.set("secret", secrets.token_hex(32))
        self.server = socket.create_server((_own_address(store), 0))
        host, port = self.server.getsockname()[:2]
        self.store.set(f"worker/{rank}", f"{name}\n{host}\n{port}")
        self.workers, self.addresses = {}, {}
        self.store.wait(["secret", *(f"worker/{r}" for r in range(world_size))])
        self.secret = self.store.get("secret")
        for r in range(world_size):
            other, where, number = self.store.get(f"worker/{r}").decode().split("\n")
            if other in self.workers:
                raise RuntimeError(f"RPC worker name {other} is not unique.")
            self.workers[other], self.addresses[other] = WorkerInfo(r, other), (where, int(number))
        threading.Thread(target=self._accept, name="cresset-rpc-accept", daemon=True).start()

    def worker(self, to):
        """A WorkerInfo by name, number or itself."""
        if isinstance(to, str):
            if to not in self.workers:
                raise ValueError(f"RPC: unknown destination worker {to}; there are {', '.join(self.workers)}")
            return self.workers[to]
        if isinstance(to, WorkerInfo):
            return to
        for info in self.workers.values():
            if isinstance(to, int) and info.id == to:
                return info
        raise ValueError(f"Cannot get WorkerInfo from {to!r}")

    # ---- asking

    def ask(self, to, kind, name, data, timeout):
        """Send a question; a Future of the answer's data."""
        number, future = next(self.numbers), Future()
        limit = self.timeout if timeout is None or timeout < 0 else timeout
        connection = self._connected(to.name)
        with self.lock:
            self.waiting[number] = future
        if limit > 0:
            timer = threading.Timer(limit, self._too_late, (number, limit, to))
            timer.daemon = True
            timer.start()
            future.add_done_callback(lambda _: timer.cancel())
        try:
            connection.send([kind, str(number).encode(), name.encode(), data])
        except OSError as error:
            self._answered(number, None, ConnectionError(f"RPC: the connection to {to.name} is lost: {error}"))
        return future

    def _connected(self, name):
        with self.lock:
            connection = self.outgoing.get(name)
            if connection is None:
                connection = self.outgoing[name] = Connection(socket.create_connection(self.addresses[name], 30))
                connection.end.settimeout(None)
                connection.send([self.secret])
                threading.Thread(
                    target=self._read_answers, args=(name, connection), name="cresset-rpc-answers", daemon=True
                ).start()
        return connection

    def _read_answers(self, name, connection):
        with contextlib.suppress(OSError, ValueError):
            while (message := connection.receive()) is not None:
                kind, number, *fields = message
                if kind == b"good":
                    self._answered(int(number), fields[0], None)
                else:
                    self._answered(int(number), None, _error(*(field.decode() for field in fields)))
        if self.open:
            with self.lock:
                left, self.waiting = self.waiting, {}
                self.outgoing.pop(name, None)
            for future in left.values():
                future.set_exception(ConnectionError(f"RPC: worker {name} ended, or the connection to it was lost"))

    def _answered(self, number, data, error):
        with self.lock:
            future = self.waiting.pop(number, None)
        if future is not None:
            future.set_exception(error) if error is not None else future.set_result(data)

    def _too_late(self, number, limit, to):
        words = f"RPC ran for more than set timeout ({limit * 1000:.0f} ms) and will now be marked with an error"
        self._answered(number, None, RuntimeError(f"{words} ({to.name} did not answer)"))

    # ---- answering

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = Connection(self.server.accept()[0])
                self.incoming.append(connection)
                threading.Thread(
                    target=self._read_questions, args=(connection,), name="cresset-rpc-questions", daemon=True
                ).start()

    def _read_questions(self, connection):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            first = connection.receive()
            if first is None or len(first) != 1 or not hmac.compare_digest(first[0], self.secret):
                connection.close()
                return
            while (message := connection.receive()) is not None:
                self.calls.submit(self._answer, connection, *message)

    def _answer(self, connection, kind, number, name, data):
        def good(value):
            connection.send([b"good", number, names.to_bytes(value, f"rpc: the result of {name.decode()}")])

        def bad(error):
            words = "".join(traceback.format_exception(error))
            head = f"On {self.info}:\n{error!r}\n{words}"
            connection.send([b"bad", number, type(error).__name__.encode(), head.encode()])

        def later(future):
            try:
                good(future.value())
            except Exception as error:
                bad(error)

        with contextlib.suppress(OSError):
            try:
                value = self._do(kind.decode(), name.decode(), names.from_bytes(data))
                if isinstance(value, _Later):
                    value.future.add_done_callback(later)
                else:
                    good(value)
            except Exception as error:
                bad(error)

    def _do(self, kind, name, data):
        if kind == "call":
            function = names.function_of(name)
            value = function(*data[0], **data[1])
            return _Later(value) if hasattr(function, "_wrapped_async_rpc_function") else value
        if kind == "make":  # a value that stays here
            function = names.function_of(name)
            value = function(*data[1], **data[2])
            if hasattr(function, "_wrapped_async_rpc_function"):
                value = value.wait()
            self.values[data[0]] = value
            return None
        if kind == "fetch":
            return self.values[data]
        if kind == "method":  # of a value here; its result is sent, or stays under a new number
            key, args, kwargs, stays = data
            value = getattr(self.values[key], name)(*args, **kwargs)
            if stays is None:
                return value
            self.values[stays] = value
            return None
        if kind == "forget":
            self.values.pop(data, None)
            return None
        raise ValueError(f"rpc: unknown message {kind}")

    def close(self):
        self.open = False
        self.server.close()
        for connection in [*self.outgoing.values(), *self.incoming]:
            connection.close()
        self.calls.shutdown(wait=False, cancel_futures=True)
        self.values.clear()


class _Later:
    """A result that comes when a Future is done."""

    def __init__(self, future):
        if not isinstance(future, Future):
            raise TypeError(
                f"Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got "
                f"{type(future)}"
            )
        self.future = future


def _own_address(store):
    """The address at which the other processes reach this one: the one that leads to the store."""
    base = store
    while isinstance(base, PrefixStore):
        base = base.underlying_store
    host, port = getattr(base, "_host", None), getattr(base, "_port", None)
    if not host or host in ("localhost", "127.0.0.1", "::1") or not port:
        return "127.0.0.1"
    with socket.create_connection((host, port), 10) as probe:
        return probe.getsockname()[0]


def _error(kind, words):
    """What another process raised, as the same class where it is one of Python's own."""
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        with contextlib.suppress(TypeError):
            return found(words)
    return RuntimeError(words)
