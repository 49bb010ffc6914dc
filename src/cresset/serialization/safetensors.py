"""The safetensors format: a length, a JSON header with name, dtype, shape and place of each tensor, then the data,
without gaps.

Files are mapped into memory, and a tensor's bytes are read when they are looked at. The functions have the names of the
safetensors package.
"""

import json
import math
import mmap
import os
import struct

import cresset
from cresset import _native

from .archive import FileSource
from .bounds import TIMES, json_cost, promised
from .saving import replaced_when_whole

__all__ = ["SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

_MAX_HEADER = 100_000_000
# In the order of the safetensors package: a file has the tensors of the last dtype first, so that all are aligned.
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32",
    "F32": "float32", "C64": "complex64",
    "F64": "float64", "I64": "int64", "U64": "uint64",
}  # fmt: skip
_PLACES = {word: place for place, word in enumerate(_DTYPES)}
_DTYPES = {word: getattr(_native, name) for word, name in _DTYPES.items()}
_WORDS = {dtype: word for word, dtype in _DTYPES.items()}


class SafetensorError(RuntimeError):
    """A file that is not what the format says."""


class Entry:
    """One tensor of a file: its dtype, shape, and the bytes from `start` to `end` of the data."""

    __slots__ = ("dtype", "shape", "start", "end")

    def __init__(self, dtype, shape, start, end):
        self.dtype, self.shape, self.start, self.end = dtype, shape, start, end


# ---------------------------------------------------------------- reading


def read_header(read, size, who):
    """(metadata, entries by name, where the data starts). `read(at, count)` gives bytes of a file of `size` bytes."""
    if size < 8:
        raise SafetensorError(f"{who}: HeaderTooSmall: {size} bytes are no safetensors file")
    (length,) = struct.unpack("<Q", read(0, 8))
    if length > _MAX_HEADER:
        raise SafetensorError(
            f"{who}: HeaderTooLarge: the header is said to have {length} bytes, more than {_MAX_HEADER}"
        )
    if length > size - 8:
        raise SafetensorError(
            f"{who}: InvalidHeaderLength: the header is said to have {length} bytes, the file has {size - 8} behind "
            "its length"
        )
    text = read(8, length)
    if text[:1] != b"{":
        raise SafetensorError(f"{who}: InvalidHeaderStart: the header does not start with a brace")
    if json_cost(text) > promised(size):
        raise SafetensorError(
            f"{who}: HeaderTooLarge: the header's values take more memory than {TIMES} times the file's {size} bytes"
        )
    try:
        header = json.loads(str(text, "utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SafetensorError(f"{who}: InvalidHeaderDeserialization: {error}") from error
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise SafetensorError(f"{who}: the metadata must map text to text")
    entries = {name: _entry(name, described, who) for name, described in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != end:
            raise SafetensorError(
                f"{who}: InvalidOffset: the tensor {name!r} starts at byte {entry.start} of the data, expected {end}"
            )
        end = entry.end
    if end != size - 8 - length:
        raise SafetensorError(
            f"{who}: MetadataIncompleteBuffer: the tensors have {end} bytes, the file has {size - 8 - length}"
        )
    return metadata, entries, 8 + length


def _without_repeats(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found


def _entry(name, described, who):
    if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorError(f"{who}: the tensor {name!r} is not described by dtype, shape and data_offsets")
    word, shape, offsets = described["dtype"], described["shape"], described["data_offsets"]
    if not isinstance(word, str) or word not in _DTYPES:
        raise SafetensorError(
            f"{who}: the tensor {name!r} has the dtype {word!r}, which is not supported; known are {', '.join(_DTYPES)}"
        )
    numbers = shape + offsets if isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2 else None
    if numbers is None or not all(type(n) is int and 0 <= n < 2**62 for n in numbers) or offsets[0] > offsets[1]:
        raise SafetensorError(
            f"{who}: the tensor {name!r} has a shape and data_offsets that are not lists of sizes below 2**62"
        )
    if len(shape) > 64 or math.prod(shape) * _DTYPES[word].itemsize != offsets[1] - offsets[0]:
        raise SafetensorError(
            f"{who}: TensorInvalidInfo: the tensor {name!r} of shape {shape} and dtype {word} does not have "
            f"{offsets[1] - offsets[0]} bytes"
        )
    return Entry(_DTYPES[word], tuple(shape), *offsets)


def _tensor(memory, entry, start):
    """The tensor on its part of `memory`."""
    size = entry.end - entry.start
    if size == 0:
        return cresset.empty(entry.shape, dtype=entry.dtype)
    data = memory[start + entry.start : start + entry.end]
    bytes_of_tensor = _native.from_buffer(data)
    if bytes_of_tensor.data_ptr() % entry.dtype.itemsize:
        bytes_of_tensor = bytes_of_tensor.clone()
    if entry.dtype == _native.bool and bool((bytes_of_tensor > 1).any()):
        return bytes_of_tensor.ne(0).view(entry.shape)
    return bytes_of_tensor.view(entry.dtype).view(entry.shape)


class safe_open:
    """A safetensors file, whose tensors are read one by one.

    Args:
        filename: its path.
        framework: "pt", which stands for this library.
        device: where the tensors go.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     cresset.safetensors.save_file({"a": cresset.ones(2)}, file.name)
    ...     with cresset.safetensors.safe_open(file.name, framework="pt") as opened:
    ...         {name: opened.get_tensor(name) for name in opened.keys()}
    {'a': tensor([1., 1.])}
    """

    def __init__(self, filename, framework="pt", device="cpu"):
        if framework not in ("pt", "torch", "pytorch", "cresset"):
            raise SafetensorError(f"safe_open: framework must be 'pt', got {framework!r}")
        self.filename, self.device = os.fspath(filename), device
        with open(self.filename, "rb") as file:
            source = FileSource(file, os.fsdecode(self.filename))
            self._metadata, self.entries, self.start = read_header(source.read, source.size, source.name)
            self.memory = memoryview(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.memory = None

    def keys(self):
        """The names of the tensors."""
        return list(self.entries)

    def offset_keys(self):
        """The names of the tensors, in the order of the file."""
        return sorted(self.entries, key=lambda name: self.entries[name].start)

    def metadata(self):
        """The texts that were saved along."""
        return self._metadata

    def _find(self, name):
        if self.memory is None:
            raise SafetensorError(f"{self.filename}: the file is closed")
        if name not in self.entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self.entries[name]

    def get_tensor(self, name):
        """One tensor."""
        return _tensor(self.memory, self._find(name), self.start).to(self.device)

    def get_tensors(self):
        """All tensors, by name."""
        return {name: self.get_tensor(name) for name in self.entries}

    def get_slice(self, name):
        """A tensor of which only the part that is indexed is read."""
        return Slice(_tensor(self.memory, self._find(name), self.start), self.device, self.entries[name])


class Slice:
    """A tensor in a file: index it to get a part."""

    def __init__(self, tensor, device, entry):
        self.tensor, self.device, self.entry = tensor, device, entry

    def get_shape(self):
        return list(self.entry.shape)

    def get_dtype(self):
        return _WORDS[self.entry.dtype]

    def __getitem__(self, index):
        return self.tensor[index].clone().to(self.device)


def load_file(filename, device="cpu"):
    """The tensors of a file, by name. Their bytes stay in the file until they are looked at; changing them does not
    change the file.
    """
    with safe_open(filename, device=device) as file:
        return file.get_tensors()


def load(data):
    """The tensors in bytes of the format, by name.

    >>> cresset.safetensors.load(cresset.safetensors.save({"a": cresset.ones(2)}))
    {'a': tensor([1., 1.])}
    """
    data = bytearray(data)
    view = memoryview(data)
    _, entries, start = read_header(lambda at, count: bytes(view[at : at + count]), len(data), "load")
    return {name: _tensor(view, entry, start) for name, entry in entries.items()}


def load_model(model, filename, strict=True, device="cpu"):
    """Load a file into a module; (missing names, unexpected names). Names that save_model left out because they share
    memory are not missing.
    """
    tensors = load_file(filename, device)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing = set(missing)
    for shared in shared_names(model.state_dict()):
        if shared - missing:
            missing -= shared
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: missing {sorted(missing)}, unexpected "
            f"{sorted(unexpected)}"
        )
    return missing, list(unexpected)


# ---------------------------------------------------------------- writing


def shared_names(tensors):
    """Sets of names whose tensors overlap in memory."""
    spans = sorted(
        (t.data_ptr(), t.data_ptr() + max(_span(t), 1), name)
        for name, t in tensors.items()
        if t.numel() and t.device.type != "meta"
    )
    groups, end = [], -1
    for start, stop, name in spans:
        if start < end:
            groups[-1].add(name)
        else:
            groups.append({name})
        end = max(end, stop)
    return [group for group in groups if len(group) > 1]


def _span(tensor):
    return (sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1) * tensor.element_size()


def _check(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, cresset.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout != cresset.strided:
            raise ValueError(
                f"You are trying to save a sparse tensors: `{name}` which this library does not support. Call "
                ".to_dense() before."
            )
        if tensor.dtype not in _WORDS:
            raise ValueError(f"save_file: the format has no dtype for {tensor.dtype} of {name!r}")
        if tensor.device.type == "meta":
            raise ValueError(f"save_file: {name!r} is on the meta device and has no data")
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Call `.contiguous()` "
                "first, or clone it."
            )
    shared = shared_names(tensors)
    if shared:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {[sorted(s) for s in shared]}. "
            "A potential way to correctly save your model is to use `save_model`, or to clone them."
        )


def _pieces(tensors, metadata):
    """The parts of the file, in order."""
    _check(tensors)
    order = sorted(tensors.items(), key=lambda item: (-_PLACES[_WORDS[item[1].dtype]], item[0]))
    header, at = {}, 0
    if metadata is not None:
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
            raise TypeError("save_file: the metadata must map text to text")
        header["__metadata__"] = dict(metadata)
    for name, tensor in order:
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _WORDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text))
    yield text
    for _, tensor in order:
        if tensor.numel():
            yield memoryview(tensor.detach().cpu().reshape(-1).view(_native.uint8))


def save(tensors, metadata=None):
    """The bytes of a file with these tensors."""
    return b"".join(_pieces(tensors, metadata))


def save_file(tensors, filename, metadata=None):
    """Write tensors by name to a file, whole or not at all.

    Args:
        tensors: a dictionary from names to contiguous tensors that do not share memory.
        metadata: texts by name that are saved along.
    """
    _check(tensors)
    with replaced_when_whole(filename) as file:
        for piece in _pieces(tensors, metadata):
            file.write(piece)


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Write a module's state_dict to a file. Of tensors that share memory the largest is written, the others are noted
    in the metadata.
    """
    tensors, metadata = dict(model.state_dict()), dict(metadata or {})
    for shared in shared_names(tensors):
        kept = min(shared, key=lambda name: (-tensors[name].numel(), name))
        for name in sorted(shared - {kept}):
            if tensors[name].data_ptr() != tensors[kept].data_ptr() or tensors[name].numel() != tensors[kept].numel():
                raise RuntimeError(
                    f"save_model: {name!r} and {kept!r} share a part of their memory only; clone one of them"
                )
            del tensors[name]
            metadata.setdefault(name, kept)
    if force_contiguous:
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, filename, metadata or None)
