"""PyTorchFileReader and PyTorchFileWriter: the records of an archive by name, for programs that look inside of
files."""

import contextlib
import os

from cresset import _native
from cresset.storage import TypedStorage, UntypedStorage

from .archive import ZIP_MAGIC, ArchiveReader, ArchiveWriter, FileSource
from .saving import data_of

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileReader:
    """The records of an archive.

    >>> import io
    >>> file = io.BytesIO()
    >>> cresset.save(cresset.ones(2), file)
    >>> _ = file.seek(0)
    >>> cresset.PyTorchFileReader(file).get_record("byteorder")
    b'little'
    """

    def __init__(self, file):
        self._owned = None
        if isinstance(file, (str, os.PathLike)):
            file = self._owned = open(file, "rb")  # noqa: SIM115  (closed with the reader)
        self._archive = ArchiveReader(FileSource(file))

    def __del__(self):
        if self._owned is not None:
            self._owned.close()

    def get_all_records(self):
        """The names of all records."""
        return list(self._archive.records)

    def has_record(self, name):
        """Whether there is a record of this name."""
        return name in self._archive

    def get_record(self, name):
        """The bytes of a record."""
        return self._archive.read(name)

    def get_record_size(self, name):
        """How many bytes a record has."""
        return self._archive.record(name).size

    def get_record_offset(self, name):
        """Where in the file a record's bytes start."""
        return self._archive.record(name).at

    def get_storage_from_record(self, name, numel, dtype):
        """A tensor with the elements of a record, whose storage is the record."""
        if numel * dtype.itemsize > self._archive.record(name).size:
            raise RuntimeError(
                f"get_storage_from_record: {name!r} has {self._archive.record(name).size} bytes, fewer than {numel} "
                f"elements of {dtype}"
            )
        storage = UntypedStorage(numel * dtype.itemsize)
        if numel:
            self._archive.read_into(name, memoryview(storage._bytes))
        return storage._bytes.view(dtype) if numel else _native.make_tensor([], dtype, None)

    def serialization_id(self):
        """The number that tells one save from another."""
        return self.get_record(".data/serialization_id").decode() if self.has_record(".data/serialization_id") else ""


class PyTorchFileWriter:
    """Writes an archive record by record; `write_end_of_file` completes it."""

    def __init__(self, file, compute_crc32=True, storage_alignment=64):
        is_path = isinstance(file, (str, os.PathLike))
        self._owned = is_path
        self._file = open(file, "wb") if is_path else file  # noqa: SIM115  (closed by write_end_of_file)
        self._name = os.path.splitext(os.path.basename(os.fspath(file)))[0] if is_path else "archive"
        self._archive = ArchiveWriter(self._file, self._name, compute_crc32, storage_alignment)

    def archive_name(self):
        """The folder of the records."""
        return self._name

    def write_record(self, name, data, size):
        """Add a record: the first `size` bytes of text, bytes or a storage."""
        if isinstance(data, TypedStorage):
            data = data._untyped_storage
        view = (
            data_of(data)
            if isinstance(data, UntypedStorage)
            else memoryview(data.encode() if isinstance(data, str) else data)
        )
        self._archive.write(name, view[:size])

    def write_record_metadata(self, name, size):
        """Add a record of `size` bytes without writing them: they are zeros until somebody fills them in."""
        self._archive.write_room(name, size)

    def get_all_written_records(self):
        """The names of the records so far."""
        return {title.decode().partition("/")[2] for title, *_ in self._archive.entries}

    def write_end_of_file(self):
        """Write the version and the directory."""
        if "version" not in self.get_all_written_records():
            self._archive.write("version", b"3\n")
        self._archive.close()
        if self._owned:
            self._file.close()


# The ways to them that programs take which look inside of files: PyTorch's names.


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer):
    """The records of a path or an open file."""
    yield PyTorchFileReader(name_or_buffer)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer):
    """A writer of records to a path or an open file, whose archive is complete afterwards."""
    writer = PyTorchFileWriter(name_or_buffer)
    yield writer
    writer.write_end_of_file()
    if hasattr(name_or_buffer, "flush"):
        name_or_buffer.flush()


@contextlib.contextmanager
def _open_file_like(name_or_buffer, mode):
    """A path opened and closed again, or an open file as it is, which is flushed if it was written to."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        with open(name_or_buffer, mode) as file:
            yield file
        return
    yield name_or_buffer
    if "w" in mode and hasattr(name_or_buffer, "flush"):
        name_or_buffer.flush()


def _is_zipfile(f):
    """Whether an archive begins where an open file stands: its end, which zipfile.is_zipfile looks at, may be the data
    of a tensor.
    """
    at = f.tell()
    start = f.read(len(ZIP_MAGIC))
    f.seek(at)
    return start == ZIP_MAGIC
