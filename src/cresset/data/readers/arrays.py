"""ArrayDataset: arrays in .npy, .npz and .safetensors files, mapped into memory, so that only the rows asked for are
read.
"""

import math
import mmap
import operator
import os
import re
import struct

import cresset

from ..datasets import Dataset

MAX_HEADER = 10_000  # bytes, which NumPy allows, too
_ENTRY = re.compile(
    r"""\s*(['"])(?P<key>\w+)\1\s*:\s*(?:(['"])(?P<text>[^'"]*)\3|(?P<truth>True|False)|\((?P<sizes>[\d\s,L]*)\)|(?P<fields>\[[^\]]*\]))\s*,?"""
)
DTYPES = {
    "f2": "float16", "f4": "float32", "f8": "float64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16",
    "u4": "uint32", "u8": "uint64", "b1": "bool", "?": "bool", "c8": "complex64", "c16": "complex128",
}  # fmt: skip


def read_numpy_header(file, name):
    """(shape, NumPy's description of the dtype, is it in column order) of an array in NumPy's format; `file` then
    stands at the data.
    """
    magic = file.read(8)
    if magic[:6] != b"\x93NUMPY" or len(magic) < 8 or magic[6] not in (1, 2, 3):
        raise ValueError(f"{name}: not an array in NumPy's format")
    width, code = (2, "<H") if magic[6] == 1 else (4, "<I")
    (length,) = struct.unpack(code, file.read(width).ljust(width, b"\0"))
    if length > MAX_HEADER:
        raise ValueError(f"{name}: the header is said to have {length} bytes")
    header = _entries(file.read(length).decode("utf-8" if magic[6] == 3 else "latin-1", "replace"), name)
    shape, described, by_columns = header["shape"], header["descr"], header["fortran_order"]
    if (
        not isinstance(shape, tuple)
        or not isinstance(described, str)
        or not isinstance(by_columns, bool)
        or math.prod(shape) >= 2**60
    ):
        raise ValueError(f"{name}: the header cannot be read ({str(header)[:200]!r})")
    return shape, described, by_columns


def _entries(text, name):
    """The dictionary in a header: text, bools and sizes by name."""
    found, text = {"shape": None, "descr": None, "fortran_order": None}, text.strip()
    at = 1 if text.startswith("{") else len(text)
    while match := _ENTRY.match(text, at):
        at = match.end()
        if match["sizes"] is not None:
            numbers = [part.strip().removesuffix("L") for part in match["sizes"].split(",") if part.strip()]
            found[match["key"]] = (
                tuple(map(int, numbers)) if all(n.isdigit() and len(n) < 20 for n in numbers) else None
            )
        else:
            found[match["key"]] = (
                match["truth"] == "True"
                if match["truth"]
                else match["text"]
                if match["text"] is not None
                else match["fields"]
            )
    if text[at:].strip() != "}" or len(found) != 3:
        raise ValueError(f"{name}: the header cannot be read ({text[:200]!r})")
    return found


def mapped(file):
    """The file as memory. Its bytes are read when they are looked at; what is written does not reach the file."""
    return mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)


def mapped_array(file, memory, at, end, name):
    """The tensor on the array in NumPy's format from byte `at` to `end` of the file, which is mapped to `memory`."""
    file.seek(at)
    shape, described, by_columns = read_numpy_header(file, name)
    match = re.fullmatch(r"[<|=]?([a-zA-Z]\d+|\?)", described)
    if match is None or match[1] not in DTYPES:
        raise ValueError(
            f"{name}: arrays of {described!r} cannot be mapped; convert them to one of "
            f"{', '.join(sorted(set(DTYPES.values())))}"
        )
    dtype = getattr(cresset, DTYPES[match[1]])
    start, size = file.tell(), math.prod(shape) * dtype.itemsize
    if size == 0:
        return cresset.empty(shape, dtype=dtype)
    if start + size > end:
        raise ValueError(f"{name}: the array needs {size} bytes, the file ends before")
    flat = cresset.frombuffer(memory, dtype=cresset.uint8, count=size, offset=start)
    if flat.data_ptr() % dtype.itemsize:
        flat = flat.clone()
    flat = flat.view(dtype)
    return flat.view(shape[::-1]).permute(tuple(range(len(shape) - 1, -1, -1))) if by_columns else flat.view(shape)


def arrays_of_archive(path, file):
    """The arrays of an .npz file, by name. They must be stored as they are, which `numpy.savez` does."""
    from ...serialization.archive import ArchiveReader, FileSource

    file.seek(0)
    try:
        records = ArchiveReader(FileSource(file, path), flat=True).records
    except RuntimeError as error:
        raise ValueError(f"{path}: {error}") from None
    found, memory = {}, mapped(file)
    for record in records.values():
        name = record.name.removesuffix(".npy")
        if record.unpacked is not None:
            raise ValueError(
                f"{path}: {name!r} is compressed and cannot be mapped; write it with numpy.savez, not savez_compressed"
            )
        found[name] = mapped_array(file, memory, record.at, record.at + record.size, f"{path}: {name!r}")
    return found


class ArrayDataset(Dataset):
    """Row i of each array in a file: a dictionary by name, or for an .npy file, or one name, the row itself.

    Args:
        path: an .npy, .npz or .safetensors file. Its data stays in the file until it is looked at; workers share it.
        names: the arrays that are wanted; one name or several. None for all.
        transform: a function of the sample.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
    ...     cresset.safetensors.save_file({"x": cresset.arange(6.0).view(3, 2), "y": cresset.arange(3)}, file.name)
    ...     rows = cresset.utils.data.ArrayDataset(file.name)
    ...     len(rows), rows[1]
    (3, {'y': tensor(1), 'x': tensor([2., 3.])})
    """

    def __init__(self, path, names=None, transform=None):
        self.path, self.names, self.transform = os.fspath(path), names, transform
        self.open()

    def open(self):
        with open(self.path, "rb") as file:
            start = file.read(16)
            if start[:6] == b"\x93NUMPY":
                arrays, self.single = (
                    {"array": mapped_array(file, mapped(file), 0, os.fstat(file.fileno()).st_size, self.path)},
                    True,
                )
                if self.names is not None:
                    raise ValueError(
                        f"ArrayDataset: {self.path} has one array without a name; leave out names={self.names!r}"
                    )
            elif start[:4] == b"PK\x03\x04":
                arrays, self.single = arrays_of_archive(self.path, file), isinstance(self.names, str)
            else:
                from ...serialization import safetensors

                arrays, self.single = safetensors.load_file(self.path), isinstance(self.names, str)
        if self.names is not None:
            wanted = [self.names] if isinstance(self.names, str) else list(self.names)
            if missing := [name for name in wanted if name not in arrays]:
                raise ValueError(
                    f"{self.path}: there is no array {missing[0]!r}; the file has {', '.join(map(repr, arrays))}"
                )
            arrays = {name: arrays[name] for name in wanted}
        if not arrays:
            raise ValueError(f"{self.path}: the file has no arrays")
        if flat := [name for name, value in arrays.items() if value.dim() == 0]:
            raise ValueError(f"{self.path}: {flat[0]!r} is a single number and has no rows; choose others with names=")
        lengths = {name: len(value) for name, value in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"{self.path}: the arrays differ in their number of rows: {lengths}; choose some with names="
            )
        self.arrays = arrays

    def __getstate__(self):
        return {**self.__dict__, "arrays": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.open()

    def __len__(self):
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"ArrayDataset: index {index} is out of range; {self.path} has {len(self)} rows")
        rows = {name: value[index] for name, value in self.arrays.items()}
        sample = next(iter(rows.values())) if self.single else rows
        return sample if self.transform is None else self.transform(sample)
