"""A store in a file, for processes that see the same folder. The file is a list of what was set; a lock keeps it
whole."""

import contextlib
import fcntl
import os
import struct
import time

from ..errors import DistStoreError
from .base import Store
from .hash import too_late
from .table import Later, Table

RECORD = struct.Struct("<BII")  # the operation's number, the sizes of key and value
WRITES = {"set", "add", "compare_set", "append", "delete", "arrive", "push", "pop"}


class FileStore(Store):
    """A store in the file `file_name`, which must not be left over from an earlier job.

    Args:
        file_name: a path that all processes see.
        world_size: how many processes there will be; the last that lets go of its store takes the file away. -1:
            unknown, the file stays.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self._path, self._size = os.fspath(file_name), world_size
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._table, self._read = Table(), 0
        self._owner = os.getpid()
        if world_size > 0:
            self._ask("add", ["cresset/users"], ["1"])

    @property
    def path(self):
        """The file."""
        return self._path

    @contextlib.contextmanager
    def _locked(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._catch_up()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self):
        """Do what others wrote since."""
        size = os.fstat(self._file).st_size
        if size == self._read:
            return
        data = os.pread(self._file, size - self._read, self._read)
        at = 0
        while at < len(data):
            if at + RECORD.size > len(data):
                raise DistStoreError(f"FileStore: {self._path} ends in the middle of a record")
            number, key, value = RECORD.unpack_from(data, at)
            at += RECORD.size
            if number not in (0, 1) or at + key + value > len(data):
                raise DistStoreError(f"FileStore: {self._path} holds something else than a store")
            name = data[at : at + key]
            at += key
            if number == 0:
                self._table.values[name] = data[at : at + value]
            else:
                self._table.values.pop(name, None)
            at += value
        self._read = size

    def request(self, operation, keys=(), values=(), timeout=0.0):
        if operation in ("push", "pop", "length", "arrive"):
            return self._by_keys(operation, keys, values, timeout)
        deadline, pause = time.monotonic() + timeout, 0.001
        while True:
            try:
                with self._locked():
                    before = {key: self._table.values.get(key) for key in keys}
                    answer = self._table.answer(operation, keys, values, {})
                    if operation in WRITES:
                        self._write(before)
                return answer
            except Later:
                if time.monotonic() >= deadline:
                    raise DistStoreError(too_late(operation, keys, timeout)) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _write(self, before):
        """Put the keys that changed into the file: what their values are now."""
        records = []
        for key, old in before.items():
            new = self._table.values.get(key)
            if new != old:
                records.append(RECORD.pack(int(new is None), len(key), len(new or b"")) + key + (new or b""))
        text = b"".join(records)
        try:
            if os.pwrite(self._file, text, self._read) != len(text):
                raise OSError("the disk is full")
        except OSError as error:
            os.ftruncate(self._file, self._read)
            self._table.values.update({key: old for key, old in before.items() if old is not None})
            for key in [key for key, old in before.items() if old is None]:
                self._table.values.pop(key, None)
            raise DistStoreError(f"FileStore: {self._path} cannot be written: {error}") from error
        self._read += len(text)

    def _by_keys(self, operation, keys, values, timeout):
        """Queues and barriers, made of ordinary keys."""
        name = keys[0]
        if operation == "push":
            place = int(self.request("add", [name + b"/pushed"], [b"1"])[0])
            return self.request("set", [name + b"/%d" % place], values)
        if operation == "length":
            pushed, popped = (int(self.request("add", [name + end], [b"0"])[0]) for end in (b"/pushed", b"/popped"))
            return [str(max(0, pushed - popped)).encode()]
        if operation == "pop":
            deadline = time.monotonic() + timeout
            while int(self.request("add", [name + b"/pushed"], [b"0"])[0]) <= int(
                self.request("add", [name + b"/popped"], [b"0"])[0]
            ):
                if time.monotonic() >= deadline:
                    raise DistStoreError(too_late(operation, keys, timeout))
                time.sleep(0.005)
            place = int(self.request("add", [name + b"/popped"], [b"1"])[0])
            key = name + b"/%d" % place
            value = self.request("get", [key], (), max(0.0, deadline - time.monotonic()))
            self.request("delete", [key])
            return value
        arrived = int(self.request("add", [name + b"/arrived"], [b"1"])[0])
        size = int(values[0])
        done = name + b"/round %d" % ((arrived - 1) // size)
        if arrived % size == 0:
            self.request("set", [done], [b""])
        return self.request("wait", [done], (), timeout)

    def clone(self):
        other = FileStore(self._path)
        other._timeout = self._timeout
        return other

    def __del__(self):
        file, self._file = getattr(self, "_file", None), None
        if file is None:
            return
        if self._size > 0 and self._owner == os.getpid():
            with contextlib.suppress(OSError, DistStoreError):
                self._file = file
                left = int(self.request("add", [b"cresset/users"], [b"-1"])[0])
                done = int(self.request("add", [b"cresset/left"], [b"1"])[0])
                if left == 0 and done >= self._size:
                    os.unlink(self._path)
            self._file = None
        os.close(file)
