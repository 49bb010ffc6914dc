"""What the control plane needs of the world outside: a clock, a network, names that are new, processes, a disk.

Stores, liveness, agents and checkpoints take these from a `Surroundings`, so that the same code runs in a simulated
world, where a test moves the clock, cuts connections and fills disks.
"""

import atexit
import os
import sys
import time

from .. import _native


class Disk:
    """Files, as checkpoints need them."""

    def make_folder(self, path):
        os.makedirs(path, exist_ok=True)

    def names(self, path):
        """What is in a folder."""
        return os.listdir(path)

    def exists(self, path):
        return os.path.exists(path)

    def create(self, path, exclusive=False):
        """A new file to write bytes to; with `exclusive` an error if it is there."""
        return open(path, "xb" if exclusive else "wb")

    def sync(self, file):
        """Wait until what was written is on the disk."""
        file.flush()
        os.fsync(file.fileno())

    def sync_folder(self, path):
        """Wait until the names of a folder's files are on the disk."""
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def replace(self, old, new):
        """Give a file another name in one step, in place of what had it."""
        os.replace(old, new)

    def remove(self, path):
        os.unlink(path)

    def read(self, path, start=0, size=-1):
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(size)


class Surroundings:
    """The real world."""

    def __init__(self):
        self.disk = Disk()
        self.servers = {}  # (host, port) -> what listens there, of this process

    def now(self):
        """Seconds of a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds):
        time.sleep(seconds)

    def hostname(self):
        return os.uname().nodename

    def unique(self):
        """A name that nobody else has."""
        return os.urandom(16).hex()

    def connect(self, host, port, timeout):
        """A connection: sendall, recv, settimeout, close. OSError if there is none within `timeout` seconds."""
        import socket

        connection = socket.create_connection((host, port), timeout=timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def listen(self, host, port, descriptor=None):
        """Answer connections to an address out of a new table; an object with `host`, `port`, `close()`."""
        from .store.listening import Listening

        return Listening(host, port, descriptor)

    def heartbeat(self, connection, before, seconds):
        """Signs of life on a connection: note, heard, silence, as native/distributed/heartbeat.h says."""
        return _native.distributed.Heartbeat(connection.fileno(), before, seconds)

    def at_exit(self, f):
        """Call `f` when the process ends by itself."""
        atexit.register(f)

    def not_at_exit(self, f):
        atexit.unregister(f)

    def last_error(self):
        """What ended the program, when it ends by an exception that nobody caught."""
        return getattr(sys, "last_value", None)

    def process(self, settings, local, rank, errors, environment, generation):
        """Start a process of a job, as elastic.processes.Process says."""
        from .elastic.functions import FunctionProcess
        from .elastic.processes import Process

        kind = Process if settings.function is None else FunctionProcess
        return kind(settings, local, rank, errors, environment, generation)

    def clean_up(self):
        """Take away what processes that were killed have left."""
        from .engines.mpi import remove_orphans

        remove_orphans()

    def make_folder(self, prefix):
        """A new folder for files that nobody needs later."""
        import tempfile

        return tempfile.mkdtemp(prefix=prefix)

    def remove_folder(self, path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)


REAL = Surroundings()
