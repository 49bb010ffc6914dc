"""PyTorch's archives: zip files whose records are stored plainly, each from a multiple of 64 bytes on, under one
folder.

The reader trusts nothing that the file says about itself: each record must lie inside the file, apart from the others,
    uncompressed, where both of its
headers say, and have its checksum. So no record is larger in memory than in the file.
"""

import mmap
import os
import struct
import zlib

from . import options
from .json_pieces import Text
from .quoting import printable

__all__ = ["ArchiveReader", "ArchiveWriter", "FileSource", "ZIP_MAGIC"]

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_BIG = 0xFFFFFFFF
_CHUNK = 1 << 16  # bytes of a record that is not held as a whole


class FileSource:
    """A file seen as bytes at positions: a path, or an object with read and seek, whose current position counts as its
    start.
    """

    def __init__(self, file, name=None):
        self.file, self.name = file, name or getattr(file, "name", None) or type(file).__name__
        self.start = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self.start
        file.seek(self.start)
        self.reads_into = hasattr(file, "readinto")

    def read(self, at, count):
        """`count` bytes from position `at` on."""
        if at < 0 or count < 0 or at + count > self.size:
            raise RuntimeError(
                f"load: {self.name} ends at byte {self.size}, but {count} bytes were expected from byte {at} on; the "
                "file is truncated or damaged"
            )
        self.file.seek(self.start + at)
        data = self.file.read(count)
        if len(data) != count:
            raise RuntimeError(f"load: {self.name} gave {len(data)} of {count} bytes at byte {at}")
        return data

    def read_into(self, at, memory):
        """Fill `memory` with the bytes from position `at` on."""
        count = len(memory)
        if not self.reads_into:
            memory[:] = self.read(at, count)
            return
        if at < 0 or at + count > self.size:
            raise RuntimeError(
                f"load: {self.name} ends at byte {self.size}, but {count} bytes were expected from byte {at} on; the "
                "file is truncated or damaged"
            )
        self.file.seek(self.start + at)
        done = 0
        while done < count:
            got = self.file.readinto(memory[done:])
            if not got:
                raise RuntimeError(f"load: {self.name} gave {done} of {count} bytes at byte {at}")
            done += got

    def mapped(self):
        """The whole file as memory that is read when it is looked at."""
        flags, protection = options.mmap_flags(), mmap.PROT_READ | mmap.PROT_WRITE
        if flags == mmap.MAP_SHARED:  # what is written to the tensors goes to the file
            with open(self.name, "r+b") as file:
                return mmap.mmap(file.fileno(), 0, flags, protection)
        return mmap.mmap(self.file.fileno(), 0, flags, protection)


class Record:
    """One file of the archive: `size` bytes from position `at` on; `unpacked` is None, or what a compressed one is said
    to have.
    """

    __slots__ = ("name", "at", "size", "checksum", "unpacked")

    def __init__(self, name, at, size, checksum, unpacked):
        self.name, self.at, self.size, self.checksum, self.unpacked = name, at, size, checksum, unpacked


class ArchiveReader:
    """The records of an archive in a FileSource, by their names without the leading folder.

    Args:
        flat: for .npz files: there is no folder, and records may be compressed.
        packed: records may be compressed, as the source in TorchScript's archives is.
    """

    def __init__(self, source, flat=False, packed=False):
        self.source, self.flat, self.packed = source, flat, flat or packed
        self.records = {}
        self.folder = ""
        self._read_directory()

    def _fail(self, what):
        raise RuntimeError(
            f"PytorchStreamReader failed reading zip archive: {what} ({self.source.name}); the file is truncated or "
            "damaged"
        )

    def _read_directory(self):
        source = self.source
        tail_size = min(source.size, 65535 + _END.size + _LOCATOR.size)
        tail = source.read(source.size - tail_size, tail_size)
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            self._fail("failed finding central directory")
        _, disk, _, _, count, size, start, _ = _END.unpack_from(tail, at)
        end = source.size - tail_size + at
        if _BIG in (size, start) or count == 0xFFFF:
            count, size, start, end = self._large_end(tail, at, end)
        if disk or start + size > end:
            self._fail(f"the directory is said to be at byte {start}, {size} bytes long, but its end is at byte {end}")
        directory, position = source.read(start, size), 0
        for _ in range(count):
            if size - position < _CENTRAL.size:
                self._fail(f"the directory has fewer than {count} entries")
            (
                magic,
                _,
                _,
                _,
                method,
                _,
                _,
                checksum,
                packed,
                unpacked,
                name_size,
                extra_size,
                comment_size,
                _,
                _,
                _,
                header,
            ) = _CENTRAL.unpack_from(directory, position)
            position += _CENTRAL.size
            if magic != b"PK\x01\x02" or size - position < name_size + extra_size + comment_size:
                self._fail("an entry of the directory is broken")
            name = directory[position : position + name_size]
            extra = directory[position + name_size : position + name_size + extra_size]
            position += name_size + extra_size + comment_size
            unpacked, packed, header = self._large_entry(extra, unpacked, packed, header)
            if method not in ((0, 8) if self.packed else (0,)) or (not method and packed != unpacked):
                self._refuse_packed(name, method)
            self._add(name, header, packed, checksum, start, unpacked if method else None)
        self._check_apart()

    def _refuse_packed(self, name, method=8):
        self._fail(
            f"the record {name!r} is compressed (method {method}), which save never does; unpack the file and store "
            "it anew"
        )

    def check_unpacked(self):
        """Refuse compressed records, now that it is known whose archive it is."""
        for record in self.records.values():
            if record.unpacked is not None:
                self._refuse_packed(record.name.encode())

    def _large_end(self, tail, at, end):
        locator = at - _LOCATOR.size
        if locator < 0 or tail[locator : locator + 4] != b"PK\x06\x07":
            self._fail("the end of a large archive is missing")
        _, _, position, _ = _LOCATOR.unpack_from(tail, locator)
        if position + _END64.size > end:
            self._fail("the end of a large archive is broken")
        magic, _, _, _, _, _, _, count, size, start = _END64.unpack(self.source.read(position, _END64.size))
        if magic != b"PK\x06\x06":
            self._fail("the end of a large archive is broken")
        return count, size, start, position

    def _large_entry(self, extra, unpacked, packed, header):
        """Sizes that do not fit into 32 bits stand in an extra field."""
        values = [unpacked, packed, header]
        if _BIG not in values:
            return values
        position = 0
        while len(extra) - position >= 4:
            kind, size = struct.unpack_from("<2H", extra, position)
            position += 4
            if kind == 1 and size <= len(extra) - position:
                numbers = list(struct.unpack_from(f"<{size // 8}Q", extra, position))
                return [numbers.pop(0) if value == _BIG and numbers else value for value in values]
            position += size
        self._fail("the sizes of a large record are missing")

    def _add(self, name, header, size, checksum, directory, unpacked):
        if header + _LOCAL.size > directory:
            self._fail(f"the record {name!r} is said to be at byte {header}, behind the end of the records")
        fields = _LOCAL.unpack(self.source.read(header, _LOCAL.size))
        magic, method, name_size, extra_size = fields[0], fields[3], fields[9], fields[10]
        if (
            magic != ZIP_MAGIC
            or (method != 0) != (unpacked is not None)
            or name_size != len(name)
            or self.source.read(header + _LOCAL.size, name_size) != name
        ):
            self._fail(f"the header of the record {name!r} at byte {header} does not fit the directory")
        at = header + _LOCAL.size + name_size + extra_size
        if at + size > directory:
            self._fail(
                f"the record {name!r} has {size} bytes from byte {at} on, but the records end at byte {directory}"
            )
        try:
            text = name.decode("utf-8")
        except UnicodeDecodeError:
            self._fail(f"the record name {name!r} is not text")
        folder, slash, rest = ("", "/", text) if self.flat else text.partition("/")
        if not slash or (self.records and folder != self.folder):
            self._fail(f"the record {text!r} is not in the archive's one folder")
        if rest in self.records:
            self._fail(f"there are two records {text!r}")
        self.folder = folder
        self.records[rest] = Record(text, at, size, checksum, unpacked)

    def _check_apart(self):
        end, before = 0, None
        for record in sorted(self.records.values(), key=lambda record: (record.at, record.size)):
            if record.at < end:
                self._fail(f"the records {before.name!r} and {record.name!r} overlap")
            end, before = record.at + record.size, record

    def __contains__(self, name):
        return name in self.records

    def record(self, name):
        if name not in self.records:
            self._fail(printable(f"file not found: {self.folder}/{name}", 300))
        return self.records[name]

    def read(self, name):
        """The bytes of a record."""
        record = self.record(name)
        data = self.source.read(record.at, record.size)
        self.check(record, data)
        return data

    def json(self, name):
        """A record of JSON, to be read a piece at a time."""
        record, checksum = self.record(name), 0
        for at in range(record.at, record.at + record.size, _CHUNK):
            checksum = zlib.crc32(self.source.read(at, min(_CHUNK, record.at + record.size - at)), checksum)
        self.compare(record, checksum)
        return Text(lambda at, count: self.source.read(record.at + at, count), record.size).whole()

    def beginning(self, name, count):
        """At most the first `count` bytes of a record, unpacked, unchecked."""
        record = self.record(name)
        if record.unpacked is None:
            return self.source.read(record.at, min(record.size, count))
        packed = self.source.read(record.at, min(record.size, count + 1024))
        try:
            return zlib.decompressobj(-15).decompress(packed, count)
        except zlib.error as error:
            self._fail(f"the record {record.name!r} cannot be unpacked: {error}")

    def read_into(self, name, memory):
        """Fill `memory` with the first bytes of a record."""
        record = self.record(name)
        if len(memory) > record.size:
            self._fail(f"the record {record.name!r} has {record.size} bytes, {len(memory)} were expected")
        self.source.read_into(record.at, memory)
        if len(memory) == record.size:
            self.check(record, memory)

    def check(self, record, data):
        """Refuse data that does not have the record's checksum."""
        if record.checksum and options.get_crc32_options():
            self.compare(record, zlib.crc32(data))

    def compare(self, record, checksum):
        """Refuse another checksum than the record's. Zero stands for one that was not computed."""
        if record.checksum and options.get_crc32_options() and checksum != record.checksum:
            self._fail(f"the record {record.name!r} does not have its checksum")


class ArchiveWriter:
    """Writes records one behind the other to an object with `write`. `close` adds the directory."""

    def __init__(self, file, folder, checked=None, alignment=None):
        self.file, self.folder, self.at, self.entries = file, folder, 0, []
        self.alignment = options.save.storage_alignment if alignment is None else alignment
        self.checked = options.get_crc32_options() if checked is None else checked
        self.checksums = 0

    def _write(self, data):
        view = memoryview(data)
        while len(view):  # a raw file may take a part only
            taken = self.file.write(view)
            self.at += len(view) if taken is None else taken
            view = view[len(view) if taken is None else taken :]

    def _skip(self, size):
        """Leave room: behind the end of a file that can be positioned, where it takes no space, else zeros."""
        if hasattr(self.file, "seek") and hasattr(self.file, "tell"):
            here = self.file.tell()
            if self.file.seek(0, os.SEEK_END) == here:
                self.file.seek(here + size)
                self.at += size
                return
            self.file.seek(here)
        for start in range(0, size, _CHUNK):
            self._write(bytes(min(_CHUNK, size - start)))

    def write(self, name, data):
        """Add a record. `data` is bytes or a one-dimensional memoryview of them."""
        self._write_header(name, len(data), zlib.crc32(data) if self.checked else 0)
        self._write(data)

    def write_room(self, name, size):
        """Add a record of `size` bytes that somebody else will write, or nobody."""
        self._write_header(name, size, 0)
        self._skip(size)

    def _write_header(self, name, size, checksum):
        title = f"{self.folder}/{name}".encode()
        header = self.at
        self.checksums = zlib.crc32(checksum.to_bytes(4, "little"), self.checksums)
        large = struct.pack("<2H2Q", 1, 16, size, size) if size >= _BIG else b""
        unpadded = header + _LOCAL.size + len(title) + len(large) + 4
        padding = -unpadded % self.alignment
        extra = large + struct.pack("<2s1H", b"FB", padding) + b"Z" * padding
        shown = min(size, _BIG)
        self._write(
            _LOCAL.pack(
                ZIP_MAGIC, 45 if large else 0, 0x0800, 0, 0, 0x21, checksum, shown, shown, len(title), len(extra)
            )
            + title
            + extra
        )
        self.entries.append((title, header, size, checksum))

    def close(self):
        start = self.at
        for title, header, size, checksum in self.entries:
            extra = b""
            if size >= _BIG:
                extra += struct.pack("<2Q", size, size)
            if header >= _BIG:
                extra += struct.pack("<Q", header)
            if extra:
                extra = struct.pack("<2H", 1, len(extra)) + extra
            shown = min(size, _BIG)
            version = 45 if extra else 0
            self._write(
                _CENTRAL.pack(b"PK\x01\x02", version, version, 0x0800, 0, 0, 0x21, checksum, shown, shown, len(title),
                    len(extra), 0, 0, 0, 0, min(header, _BIG))
                + title + extra
            )  # fmt: skip
        size, count = self.at - start, len(self.entries)
        if start >= _BIG or size >= _BIG or count >= 0xFFFF:
            end = self.at
            self._write(_END64.pack(b"PK\x06\x06", _END64.size - 12, 45, 45, 0, 0, count, count, size, start))
            self._write(_LOCATOR.pack(b"PK\x06\x07", 0, end, 1))
        self._write(
            _END.pack(b"PK\x05\x06", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(size, _BIG), min(start, _BIG), 0)
        )
