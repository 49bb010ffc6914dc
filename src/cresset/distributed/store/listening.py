"""The sockets of a store: one thread that hands what comes to a Server, and sends what it answers."""

import contextlib
import selectors
import socket
import threading
import time

from .server import Server


class Listening:
    """A Server that answers at an address, in a thread.

    Args:
        host, port: where; port 0 lets the system choose one.
        descriptor: a listening socket that was made before, by its number.
    """

    def __init__(self, host, port, descriptor=None):
        self.listener = socket.socket(fileno=descriptor) if descriptor is not None else listen(host, port)
        self.host, self.port = self.listener.getsockname()[:2]
        self.server = Server(time.monotonic, self.flush)
        self.listener.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, name="cresset-store", daemon=True)
        self.thread.start()

    def is_alive(self):
        return self.thread.is_alive()

    def close(self):
        with contextlib.suppress(OSError):
            self.wake.send(b"x")
        if self.thread is not threading.current_thread():
            self.thread.join(5)

    def run(self):
        while True:
            for key, events in self.selector.select(self.server.patience()):
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
                        self.flush(peer)
                except (OSError, ValueError):
                    self.drop(peer)
            self.server.look_at_the_clock()

    def shut(self):
        for peer in list(self.server.peers.values()):
            peer.connection.close()
        for end in (self.listener, self.wake, self.woken, self.selector):
            end.close()

    def welcome(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(connection, selectors.EVENT_READ, self.server.connected(connection))

    def read(self, peer):
        data = peer.connection.recv(1 << 16)
        if not data:
            return self.drop(peer)
        self.server.received(peer, data)
        return self.drop(peer) if peer.left else None

    def drop(self, peer):
        if peer.connection in self.server.peers:
            self.selector.unregister(peer.connection)
            peer.connection.close()
            self.server.drop(peer)

    def flush(self, peer):
        """Send what there is to send; the rest when the other side has read."""
        if peer.connection not in self.server.peers:
            return
        try:
            if peer.to_send:
                del peer.to_send[: peer.connection.send(peer.to_send)]
        except BlockingIOError:
            pass
        except OSError:
            return self.drop(peer)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.to_send else 0)
        if self.selector.get_key(peer.connection).events != wanted:
            self.selector.modify(peer.connection, wanted, peer)


def listen(host, port):
    """A listening socket at the address `host`."""
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
