"""torch.load: archives, the stream format before them, and the pickles inside, read as data (see pickles.py and
constructors.py).
"""

import os
import pickle
import struct
import sys

import cresset
from cresset import _native
from cresset.storage import TypedStorage, UntypedStorage

from . import options
from .archive import ZIP_MAGIC, ArchiveReader, FileSource
from .bounds import Budget
from .constructors import Constructors, is_known
from .locations import restore_function
from .names import safe_titles
from .pickles import PickleReader, global_names
from .saving import MAGIC_NUMBER, PROTOCOL_VERSION

__all__ = ["get_unsafe_globals_in_checkpoint", "load"]


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what save, also PyTorch's, has written. No code of the file runs.

    Args:
        f: a path, or an object with `read` and `seek`.
        map_location: where storages go: a device, its name, a dictionary from tag to tag, or a function of (storage,
            tag).
        pickle_module: is not used, since files are read as data; to give one means weights_only=False, as in PyTorch.
        weights_only: False also reads instances of modules, if their classes are imported, and some containers of the
            standard library. Other classes must be allowed with serialization.add_safe_globals, whatever this says.
        mmap: leave the data in the file and read it when it is looked at. Only for a path. By default
            `utils.serialization.config.load.mmap`, which is False.

    >>> import io
    >>> file = io.BytesIO()
    >>> cresset.save([cresset.arange(3), 0.5], file)
    >>> _ = file.seek(0)
    >>> cresset.load(file)
    [tensor([0, 1, 2]), 0.5]
    """
    if pickle_module is not None:
        if weights_only:
            raise RuntimeError(
                "load: weights_only=True takes no pickle_module (Can not safely load weights when explicit "
                f"pickle_module is specified), got {getattr(pickle_module, '__name__', pickle_module)}"
            )
        weights_only = False
    weights_only = _with_environment(weights_only, pickle_module)
    unknown = set(pickle_load_args) - {"encoding", "errors", "fix_imports"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    settings = {
        "restore": restore_function(map_location),
        "trusting": weights_only is False,
        "encoding": pickle_load_args.get("encoding", "utf-8"),
    }
    mmap = options.load.mmap if mmap is None else bool(mmap)
    try:
        return _load_from(f, mmap, settings)
    except pickle.UnpicklingError as error:
        if settings["trusting"]:
            raise
        raise pickle.UnpicklingError(f"Weights only load failed. {error}") from error.__cause__


def _load_from(f, mmap, settings):
    if isinstance(f, (str, os.PathLike)):
        if os.fsdecode(f).endswith(".safetensors"):
            return _load_safetensors(f, settings["restore"])
        with open(f, "rb") as file:
            return _load(FileSource(file, os.fsdecode(f)), mmap, settings)
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    _check_seekable(f)
    return _load(FileSource(f), False, settings)


def _with_environment(weights_only, pickle_module):
    """What weights_only is where the environment decides for calls that do not say it."""
    if _is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        if _is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
            raise RuntimeError(
                "load: of TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD only one can be set"
            )
        return True
    if weights_only is None and pickle_module is None and _is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        import warnings

        warnings.warn(
            "load: TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is set and the call has no weights_only: forcing "
            "weights_only=False",
            stacklevel=3,
        )
        return False
    return weights_only


def _is_set(variable):
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _load_safetensors(path, restore):
    from .locations import location_tag
    from .safetensors import load_file

    tensors = load_file(path)
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        moved = restore(storage, location_tag(storage))
        if moved is not storage:
            empty = cresset.empty(0, dtype=tensor.dtype, device=moved.device)
            tensors[name] = empty.set_(moved, tensor.storage_offset(), tensor.shape, tensor.stride())
    return tensors


def _check_seekable(file):
    try:
        file.seek(file.tell())
    except (AttributeError, OSError) as error:
        message = (
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer like io.BytesIO and try to load from it instead."
        )
        raise type(error)(message) from error


def _load(source, mapped, settings):
    if source.size == 0:
        raise EOFError(f"Ran out of input: {source.name} is empty")
    start = source.read(0, min(source.size, 4))
    if start == ZIP_MAGIC:
        archive = ArchiveReader(source, packed=True)
        if "constants.pkl" in archive:
            return _load_program(source, settings)
        archive.check_unpacked()
        return ArchiveLoad(archive, mapped, settings).read()
    if mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`, please "
            "torch.save your checkpoint with this option"
        )
    return StreamLoad(source, settings).read()


def _load_program(source, settings):
    """A TorchScript archive, which jit.load reads."""
    if not settings["trusting"]:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: {source.name} is "
            "one. Read it with torch.jit.load, or pass weights_only=False"
        )
    import warnings

    from ..jit import loading  # upward: PyTorch's load reads these files too

    warnings.warn(
        (
            "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' "
            "(call "
            "'torch.jit.load' directly to silence this warning)"
        ),
        UserWarning,
        stacklevel=4,
    )
    return loading.load_from(source, settings["restore"])


_COST_OF_STORAGE, _COST_OF_REFERENCE = 700, 150  # bytes beyond the data: of a new storage, and of one more object on it


class Load:
    """What both formats share: one set of constructors, and storages by their keys."""

    named: dict = {}  # what else files of a kind may name

    def __init__(self, settings, size):
        self.restore, self.encoding, self.trusting = settings["restore"], settings["encoding"], settings["trusting"]
        self.begin(size)
        self.storages = {}
        self.swap = False

    def begin(self, size, has_numbers=True):
        self.budget = Budget(size)
        self.constructors = Constructors(self.budget, {**safe_titles(), **self.named}, self.trusting, has_numbers)

    def reader(self, data, at=0):
        make = self.constructors
        return PickleReader(data, self.budget, make.name, make, self.persistent, make.build, at, self.encoding)

    def check_id(self, saved_id, parts):
        """The parts of a persistent id, of the right kinds: class of storage, key, location, number of elements."""
        if type(saved_id) is not tuple or len(saved_id) != parts or saved_id[0] not in ("storage", b"storage"):
            first = saved_id[0] if type(saved_id) is tuple and saved_id else saved_id
            raise pickle.UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(first)}: a persistent id that is not a "
                "storage's"
            )
        kind, key, location, count = saved_id[1:5]
        dtype = _native.uint8 if kind is UntypedStorage else getattr(kind, "dtype", None)
        if not isinstance(kind, type) or not isinstance(dtype, _native.dtype):
            raise pickle.UnpicklingError("a storage whose class is not one of PyTorch's")
        key = key.decode() if isinstance(key, bytes) else key
        location = location.decode() if isinstance(location, bytes) else location
        if type(key) is not str or type(location) is not str or type(count) is not int or not 0 <= count < 2**60:
            kinds = ", ".join(type(part).__name__ for part in (key, location, count))
            raise pickle.UnpicklingError(f"a storage's key, location and number of elements cannot be {kinds}")
        self.budget.spend(_COST_OF_REFERENCE)
        return kind, dtype, key, location, count

    @staticmethod
    def typed(kind, storage, dtype):
        return storage if kind is UntypedStorage else TypedStorage(wrap_storage=storage, dtype=dtype)


class ArchiveLoad(Load):
    """One load of an archive."""

    def __init__(self, archive, mapped, settings):
        if "data.pkl" not in archive:
            if "model.json" in archive:
                raise RuntimeError(
                    f"load: {archive.source.name} is a TorchScript archive of PyTorch before 1.4, which is not read; "
                    "save it anew with a newer PyTorch"
                )
            archive.record("data.pkl")
        super().__init__(settings, archive.source.size)
        self.archive = archive
        self.memory = archive.source.mapped() if mapped else None
        if "byteorder" in archive:
            order = archive.read("byteorder")
            if order not in (b"little", b"big"):
                raise ValueError(f"load: unknown endianness type: {order!r}")
        else:
            endianness = options.get_default_load_endianness()
            order = {"LITTLE": b"little", "BIG": b"big"}.get(getattr(endianness, "name", ""), sys.byteorder.encode())
        self.swap = order != sys.byteorder.encode()

    def read(self):
        return self.reader(self.archive.read("data.pkl")).read()

    def persistent(self, saved_id):
        kind, dtype, key, location, count = self.check_id(saved_id, 5)
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = self.restore(self.fetch(key, count * dtype.itemsize, dtype), location)
            if storage.device.type == "meta":
                storage._checkpoint_offset = self.archive.record(f"data/{key}").at
        if count * dtype.itemsize > storage.nbytes():
            raise pickle.UnpicklingError(
                f"the storage {key!r} has {storage.nbytes()} bytes, {count * dtype.itemsize} are used"
            )
        return self.typed(kind, storage, dtype)

    def fetch(self, key, size, dtype, folder="data"):
        record = self.archive.record(f"{folder}/{key}")
        if size > record.size:
            raise RuntimeError(
                f"load: the storage {key!r}: record size ({record.size} bytes) does not match expected size ({size} "
                "bytes); the file is damaged"
            )
        self.budget.spend(_COST_OF_STORAGE + size)
        if self.memory is not None and not self.swap and record.at % dtype.itemsize == 0 and size:
            return UntypedStorage._on(memoryview(self.memory)[record.at : record.at + size])
        storage = UntypedStorage(size)
        if size and not options.skips_data():
            self.archive.read_into(f"{folder}/{key}", memoryview(storage._bytes))
        if self.swap:
            swap_bytes(storage, dtype)
        return storage


class StreamLoad(Load):
    """One load of the format before archives."""

    def __init__(self, source, settings):
        super().__init__(settings, source.size)
        self.begin(source.size, has_numbers=False)
        self.data = bytearray(source.size)
        source.read_into(0, memoryview(self.data))
        self.name = source.name
        self.wanted = {}  # key -> (storage, dtype), to be filled
        self.announced = 0  # bytes of all of them

    def read(self):
        at = 0
        headers = []
        for _ in range(3):
            reader = PickleReader(self.data, self.budget, _no_names, _NoMakers, _no_names, _no_names, at)
            try:
                headers.append(reader.read())
            except pickle.UnpicklingError as error:
                raise pickle.UnpicklingError(f"{self.name} is not a file that save has written: {error}") from error
            at = reader.at
            if headers[0] != MAGIC_NUMBER:
                raise RuntimeError(
                    f"Invalid magic number; corrupt file? {self.name} is not a file that save has written"
                )
        if headers[1] != PROTOCOL_VERSION:
            said = headers[1] if type(headers[1]) is int and abs(headers[1]) < 2**63 else type(headers[1]).__name__
            raise RuntimeError(f"Invalid protocol version: {said}")
        information = headers[2] if isinstance(headers[2], dict) else {}
        self.swap = information.get("little_endian", sys.byteorder == "little") != (sys.byteorder == "little")
        reader = self.reader(self.data, at)
        value = reader.read()
        keys = PickleReader(self.data, self.budget, _no_names, _NoMakers, _no_names, _no_names, reader.at)
        order = keys.read()
        if not isinstance(order, list) or not all(type(key) in (str, bytes) for key in order):
            raise RuntimeError(f"load: {self.name} has no list of its storages")
        self.fill([key.decode("utf-8", "replace") if isinstance(key, bytes) else key for key in order], keys.at)
        if self.constructors.unread:  # the numbers come behind the value: now that they are there, it is read again
            del value, reader
            self.begin(len(self.data))
            self.budget.spend(_COST_OF_STORAGE * len(self.wanted) + self.announced)
            value = self.reader(self.data, at).read()
        return value

    def persistent(self, saved_id):
        if type(saved_id) is tuple and saved_id and saved_id[0] == "module" and len(saved_id) == 4:
            return saved_id[1]  # a class, with its source text, which is not looked at
        kind, dtype, key, location, count = self.check_id(saved_id, 6)
        if key not in self.wanted:
            self.announced += count * dtype.itemsize
            if self.announced > len(self.data):
                raise RuntimeError(
                    f"load: the storages up to {key!r} are said to have {self.announced} bytes, the file has "
                    f"{len(self.data)}"
                )
            self.budget.spend(_COST_OF_STORAGE + count * dtype.itemsize)
            self.wanted[key] = (self.restore(UntypedStorage(count * dtype.itemsize), location), dtype)
        storage, dtype_of_first = self.wanted[key]
        view = saved_id[5]
        if view is not None:
            return self.view(key, storage, dtype_of_first, view)
        return self.typed(kind, storage, dtype)

    def view(self, key, storage, dtype, view):
        """Old files have storages that are parts of others: (key, offset, size)."""
        if type(view) is not tuple or len(view) != 3:
            raise pickle.UnpicklingError(f"a part of the storage {key!r} is described by a key, an offset and a size")
        _key, offset, count = view
        if (
            type(offset) is not int
            or type(count) is not int
            or offset < 0
            or count < 0
            or (offset + count) * dtype.itemsize > storage.nbytes()
        ):
            raise pickle.UnpicklingError(f"a part lies outside of the storage {key!r}")
        if storage.device.type != "cpu" or not count:
            return TypedStorage._of(storage._bytes.view(dtype)[offset : offset + count])
        part = storage._bytes[offset * dtype.itemsize : (offset + count) * dtype.itemsize]
        shared = UntypedStorage._of(_native.from_buffer(memoryview(part)))  # it begins where the part does
        return TypedStorage(wrap_storage=shared, dtype=dtype)

    def fill(self, order, at):
        for key in order:
            if key not in self.wanted:
                raise RuntimeError(f"load: {self.name} lists a storage {key!r} that it does not use")
            storage, dtype = self.wanted[key]
            if len(self.data) - at < 8:
                raise RuntimeError(f"load: {self.name} ends before the storage {key!r}; the file is truncated")
            (count,) = struct.unpack_from("<q", self.data, at)
            size = storage.nbytes()
            if count * dtype.itemsize != size or len(self.data) - at - 8 < size:
                raise RuntimeError(
                    f"load: the storage {key!r} has {count} elements and {len(self.data) - at - 8} bytes left in "
                    f"{self.name}, {size} bytes were announced"
                )
            if size and not options.skips_data() and storage.device.type != "meta":
                here = storage if storage.device.type == "cpu" else UntypedStorage(size)
                memoryview(here._bytes)[:] = memoryview(self.data)[at + 8 : at + 8 + size]
                if self.swap:
                    swap_bytes(here, dtype)
                if here is not storage:
                    storage._bytes.copy_(here._bytes)
            at += 8 + size
        missing = set(self.wanted) - set(order)
        if missing:
            raise RuntimeError(f"load: {self.name} does not have the storage {sorted(missing)[0]!r}")


class _NoMakers:
    @staticmethod
    def get(value, new):
        return None


def _no_names(*_):
    raise pickle.UnpicklingError("a name where only numbers were expected")


def swap_bytes(storage, dtype):
    """Turn the bytes of each number around."""
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width > 1:
        numbers = storage._bytes.view(-1, width)
        numbers.copy_(numbers.flip(1))


def get_unsafe_globals_in_checkpoint(f):
    """The names in a file that load would refuse, as "module.name".

    >>> import io
    >>> file = io.BytesIO()
    >>> cresset.save([1, 2], file)
    >>> _ = file.seek(0)
    >>> cresset.serialization.get_unsafe_globals_in_checkpoint(file)
    []
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    source = FileSource(f)
    if source.read(0, min(source.size, 4)) == ZIP_MAGIC:
        names, _ = global_names(ArchiveReader(source).read("data.pkl"), Budget(source.size))
    else:
        data, at = source.read(0, source.size), 0
        for _ in range(4):
            names, at = global_names(data, Budget(source.size), at)
    allowed = safe_titles()
    found = {
        f"{module}.{name}": None
        for module, name in names
        if f"{module}.{name}" not in allowed and not is_known(module, name)
    }
    return list(found)
