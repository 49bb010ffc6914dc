"""Event files: protobuf messages in TensorFlow's record format (length, checksums, body)."""

import os
import socket
import struct
import threading
import time
import weakref

from ..protobuf import double, integer, message


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def masked_crc32c(data):
    """The checksum of the record format: CRC-32C (Castagnoli), rotated and shifted."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(body):
    """One record."""
    length = struct.pack("<Q", len(body))
    return b"".join((length, struct.pack("<I", masked_crc32c(length)), body, struct.pack("<I", masked_crc32c(body))))


class EventFile:
    """A file of events. They wait in memory until `max_queue` are there, `flush_secs` have passed at the next one, or
    flush or close is called.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        os.makedirs(log_dir, exist_ok=True)
        self.log_dir, self.max_queue, self.flush_secs = log_dir, max_queue, flush_secs
        now = time.time()
        self.path = os.path.join(
            log_dir,
            f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{EventFile._count}{filename_suffix}",
        )
        EventFile._count += 1
        self._file = open(self.path, "ab")  # noqa: SIM115 (open as long as the writer)
        self._waiting, self._written, self._lock = [], now, threading.Lock()
        self.close = weakref.finalize(
            self, _write_and_close, self._file, self._waiting
        )  # at the latest when the program ends
        self._waiting.append(frame(double(1, now) + message(3, "brain.Event:2")))
        self.flush()

    _count = 0

    def add(self, body, step=None, walltime=None):
        """Add an event: `body` is its fields beyond time and step."""
        head = double(1, time.time() if walltime is None else walltime)
        if step is not None:
            head += integer(2, step)
        record = frame(head + body)
        with self._lock:
            if self._file.closed:
                raise ValueError(f"SummaryWriter: the file {self.path} is closed")
            self._waiting.append(record)
        if len(self._waiting) >= self.max_queue or time.time() - self._written > self.flush_secs:
            self.flush()

    def flush(self):
        with self._lock:
            self._file.write(b"".join(self._waiting))
            self._file.flush()
            self._waiting.clear()
            self._written = time.time()


def _write_and_close(file, waiting):
    with file:
        file.write(b"".join(waiting))
    waiting.clear()
