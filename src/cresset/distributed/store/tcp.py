"""A store in one process, which the others reach over the network."""

import contextlib
import os
import sys
import threading

from ..errors import DistNetworkError, DistStoreError
from ..surroundings import REAL
from . import wire
from .base import DEFAULT_TIMEOUT, Store, seconds
from .hash import too_late


class TCPStore(Store):
    """A store that one process holds and others reach at `host_name` and `port`. It listens at that address alone.

    Args:
        host_name: where the store is.
        port: its port; 0 lets the system choose one, see `port`.
        world_size: how many stores will be made, with the holder's; None: unknown.
        is_master: whether this process holds it.
        timeout: how long to wait for the connection, and for keys.
        wait_for_workers: whether the holder waits until all `world_size` stores are there.
        multi_tenant: whether a second holder in this process, at the same port, shares the first one's table.
        master_listen_fd: a listening socket that was made before, by its number.
        use_libuv: PyTorch's choice of a library; there is one way here.
    """

    libuvBackend = False

    def __init__(
        self, host_name, port, world_size=None, is_master=False, timeout=DEFAULT_TIMEOUT, wait_for_workers=True,
        multi_tenant=False, master_listen_fd=None, use_libuv=True, _around=REAL,
    ):  # fmt: skip
        super().__init__()
        self._around = _around
        if not 0 <= int(port) < 65536:
            raise ValueError(f"TCPStore: the port must be between 0 and 65535, not {port}")
        self._timeout = timeout
        self._host, self._port, self._owner = host_name, int(port), os.getpid()
        self._lock, self._connection, self._server = threading.Lock(), None, None
        if is_master:
            self._hold(multi_tenant, master_listen_fd)
        self._connection = self._connect(seconds(timeout))
        self._exchange("user")
        if is_master and wait_for_workers and world_size:
            self._wait_for(int(world_size), seconds(timeout))

    def _hold(self, multi_tenant, descriptor):
        servers, place = self._around.servers, (self._host, self._port)
        if multi_tenant and place in servers and servers[place].is_alive():
            self._server = servers[place]
            return
        try:
            self._server = self._around.listen(self._host, self._port, descriptor)
        except OSError as error:
            raise DistNetworkError(
                f"TCPStore: The server socket has failed to listen at {self._host}:{self._port}: {error}. Another "
                "program "
                "may use this port, or the address belongs to another machine"
            ) from error
        self._port = self._server.port
        servers[(self._host, self._port)] = self._server

    def _connect(self, patience):
        around = self._around
        deadline, pause = around.now() + patience, 0.01
        while True:
            try:
                return around.connect(self._host, self._port, max(0.1, min(10.0, deadline - around.now())))
            except OSError as error:
                if around.now() + pause > deadline:
                    raise DistNetworkError(
                        f"TCPStore: no store answered at {self._host}:{self._port} within {patience:g} s ({error}). "
                        "Does "
                        "the process with is_master=True (rank 0) run, at this address and port?"
                    ) from error
            around.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _wait_for(self, size, patience):
        deadline = self._around.now() + patience
        while (users := int(self._exchange("get", [b"cresset/users"])[0])) < size:
            if self._around.now() > deadline:
                raise DistStoreError(
                    f"TCPStore: Timed out after {patience:g} s waiting for clients: {users} of {size} have come to "
                    f"{self._host}:{self._port}"
                )
            self._around.sleep(0.005)

    @property
    def host(self):
        """Where the store is."""
        return self._host

    @property
    def port(self):
        """The port at which the store listens."""
        return self._port

    def __repr__(self):
        return f"TCPStore({self._host!r}, {self._port})"

    # ---- requests

    def request(self, operation, keys=(), values=(), timeout=0.0):
        return self._exchange(operation, keys, values, timeout)

    def _exchange(self, operation, keys=(), values=(), timeout=0.0):
        if self._owner != os.getpid():
            self._after_fork()
        text = wire.pack([operation.encode(), b"%.6f" % timeout, b"%d" % len(keys), *keys, *values])
        with self._lock:
            try:
                self._connection.settimeout(timeout + self._answers)  # later the holder is stopped, or out of reach
                self._connection.sendall(text)
                status, *fields = self._receive()
            except (OSError, ValueError, EOFError) as error:
                raise DistNetworkError(
                    f"TCPStore.{operation}: the connection to the store at {self._host}:{self._port} is lost "
                    f"({error or type(error).__name__}); has the process that holds it ended?"
                ) from error
        if status == b"late":
            raise DistStoreError(too_late(operation, keys, timeout))
        if status == b"wrong":
            raise DistStoreError(f"TCPStore.{operation}: {fields[0].decode(errors='replace')}")
        return fields

    def _receive(self):
        (size,) = wire.LENGTH.unpack(self._read(4))
        if size > wire.LIMIT:
            raise ValueError(f"an answer of {size} bytes")
        return wire.unpack(self._read(size))

    def _read(self, size):
        parts, left = [], size
        while left:
            part = self._connection.recv(min(left, 1 << 20))
            if not part:
                raise EOFError("end of file")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _after_fork(self):
        """A child of fork gets a connection of its own; the holder stays with the parent."""
        self._owner, self._lock, self._server = os.getpid(), threading.Lock(), None
        self._connection = self._connect(seconds(self._timeout))

    def clone(self):
        return TCPStore(self._host, self._port, timeout=self._timeout, _around=self._around)

    def close(self):
        """Let go of the connection, and of the table if this process holds it and nobody else does."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._server is not None and self._owner == os.getpid():
            self._around.servers.pop((self._host, self._port), None)
            self._server.close()
            self._server = None

    def __del__(self, ending=sys.is_finalizing):  # at the end of the interpreter the names of modules are gone
        if getattr(self, "_connection", None) is not None and not ending():
            with contextlib.suppress(OSError, RuntimeError):
                self.close()
