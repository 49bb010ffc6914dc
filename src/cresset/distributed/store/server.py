"""The process that holds the table of a TCPStore: one thread that answers everybody.

A member of a job keeps one connection open on which it says who it is ("member") and that it lives ("alive", without an
answer). When such a connection ends without "leave", or is silent for too long, the member is gone: the server says so
under the key `cresset/gone/<name>`, where those who wait for it look.
"""

import contextlib
import selectors
import socket
import threading
import time

from . import wire
from .table import Later, Table

SILENCE = 3.0  # seconds without a sign of life


class Peer:
    """A connection: what came in, what has to go out, and a request that waits."""

    def __init__(self, connection):
        self.connection, self.received, self.to_send = connection, bytearray(), bytearray()
        self.waiting = None  # (operation, keys, values, state, deadline)
        self.member, self.seen = None, 0.0


class Server:
    """Answers requests on a listening socket, in a thread."""

    def __init__(self, listener):
        self.listener, self.table, self.peers = listener, Table(), {}
        self.users = 0  # TCPStores that came
        listener.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, name="cresset-store", daemon=True)
        self.thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self.wake.send(b"x")
        if self.thread is not threading.current_thread():
            self.thread.join(5)

    def run(self):
        while True:
            for key, events in self.selector.select(self.patience()):
                if key.fileobj is self.woken:
                    return self.shut()
                if key.fileobj is self.listener:
                    self.welcome()
                    continue
                peer = key.data
                try:
                    if events & selectors.EVENT_READ:
                        self.read(peer)
                    if events & selectors.EVENT_WRITE:
                        self.send(peer)
                except (OSError, ValueError):
                    self.drop(peer)
            self.look_at_the_clock()

    def shut(self):
        for peer in list(self.peers.values()):
            peer.connection.close()
        for end in (self.listener, self.wake, self.woken, self.selector):
            end.close()

    def patience(self):
        """Seconds until something has to happen by itself."""
        now = time.monotonic()
        times = [p.waiting[4] - now for p in self.peers.values() if p.waiting]
        times += [p.seen + SILENCE - now for p in self.peers.values() if p.member]
        return max(0.0, min(times)) if times else None

    def look_at_the_clock(self):
        now = time.monotonic()
        for peer in list(self.peers.values()):
            if peer.waiting and peer.waiting[4] <= now:
                operation, keys = peer.waiting[:2]
                peer.waiting = None
                self.answer(peer, [b"late", operation.encode(), *keys])
            if peer.member and peer.seen + SILENCE <= now:
                self.gone(peer, f"gave no sign of life for {SILENCE:g} s")

    def welcome(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = self.peers[connection] = Peer(connection)
        self.selector.register(connection, selectors.EVENT_READ, peer)

    def drop(self, peer):
        if self.peers.pop(peer.connection, None) is None:
            return
        self.selector.unregister(peer.connection)
        peer.connection.close()
        if peer.member:
            self.gone(peer, "ended")

    def gone(self, peer, how):
        name, peer.member = peer.member, None
        self.table.values[b"cresset/gone/" + name] = how.encode()
        self.table.values[b"cresset/gone"] = name
        self.changed()

    # ---- requests

    def read(self, peer):
        data = peer.connection.recv(1 << 16)
        if not data:
            return self.drop(peer)
        peer.received += data
        while (message := wire.take(peer.received)) is not None:
            self.request(peer, message)

    def request(self, peer, message):
        if len(message) < 3:
            raise ValueError("a request without its parts")
        operation, timeout, count, *rest = message
        operation, count = operation.decode("ascii"), int(count)
        keys, values = rest[:count], rest[count:]
        if operation == "member":
            peer.member, peer.seen = keys[0], time.monotonic()
            return self.answer(peer, [b"done"])
        if operation == "alive":
            peer.seen = time.monotonic()
            return None
        if operation == "leave":
            peer.member = None
            return self.answer(peer, [b"done"])
        if operation == "user":
            self.users += 1
            self.table.values[b"cresset/users"] = str(self.users).encode()
            self.answer(peer, [b"done"])
            return self.changed()
        if operation not in Table.OPERATIONS or (
            not keys and operation not in ("count", "list", "get", "wait", "check", "set")
        ):
            raise ValueError(f"no request {operation!r}")
        peer.waiting = (operation, keys, values, {}, time.monotonic() + float(timeout))
        if self.try_again(peer):
            self.changed()
        return None

    def try_again(self, peer):
        """Whether a request that waits was answered."""
        operation, keys, values, state, deadline = peer.waiting
        try:
            answer = [b"done", *self.table.answer(operation, keys, values, state)]
        except Later:
            return operation == "arrive"
        except (ValueError, IndexError) as error:
            answer = [b"wrong", str(error).encode()]
        peer.waiting = None
        self.answer(peer, answer)
        return operation not in ("get", "wait", "check", "count", "list", "length")

    def changed(self):
        """Ask again for those who wait."""
        again = True
        while again:
            again = False
            for peer in list(self.peers.values()):
                if peer.waiting and peer.waiting[0] != "arrive":
                    again |= self.try_again(peer)
                elif peer.waiting:
                    self.try_again(peer)

    def answer(self, peer, fields):
        peer.to_send += wire.pack(fields)
        try:
            self.send(peer)
        except OSError:
            self.drop(peer)

    def send(self, peer):
        if peer.to_send:
            with contextlib.suppress(BlockingIOError):
                del peer.to_send[: peer.connection.send(peer.to_send)]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.to_send else 0)
        if peer.connection in self.peers:
            self.selector.modify(peer.connection, wanted, peer)


def listen(host, port, descriptor=None):
    """A listening socket at the address `host`, or the one that was made before."""
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    family, kind, _, _, address = socket.getaddrinfo(host or "127.0.0.1", port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(4096)
    except OSError:
        listener.close()
        raise
    return listener
