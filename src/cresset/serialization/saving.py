"""torch.save: the pickle of an object, with its storages beside it, under the names that PyTorch knows."""

import contextlib
import copyreg
import io
import os
import pickle
import re
import stat
import struct
import sys
import types
import warnings
from typing import Any, ClassVar

import cresset
from cresset import Tensor, _native
from cresset.storage import TypedStorage, UntypedStorage

from .. import _utils
from . import options
from .archive import ArchiveWriter
from .locations import location_tag

__all__ = ["DEFAULT_PROTOCOL", "save", "torch_name"]

DEFAULT_PROTOCOL = 2
OVERRIDABLE = type(_native.overridable(location_tag))  # the kind of functions that obey __torch_function__
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def torch_name(module, name):
    """PyTorch's name for something of cresset's, as (module, name)."""
    if module == "cresset._utils":
        return ("torch._tensor" if name == "_rebuild_from_type_v2" else "torch._utils"), name
    if module.startswith("cresset.nn."):
        from cresset.nn import modules

        if home := modules.home_of(module, name):
            return home, name
        if module.startswith("cresset.nn.functional."):
            return "torch.nn.functional", name
    if module == "cresset" or module.startswith("cresset."):
        return "torch" + module[7:], name
    return module, name


_SMALL_INTEGERS = [pickle.BININT1 + bytes([number]) for number in range(256)]


class Pickler(pickle._Pickler):
    """Python's pickler, with PyTorch's names for what is cresset's, and a function that gives storages their persistent
    ids.
    """

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)

    def __init__(self, file, protocol, persistent_id, module=pickle):
        super().__init__(file, protocol)
        self.persistent_id = persistent_id
        if module is not pickle:
            self.take_apart_like(module)

    def take_apart_like(self, module):
        """Let another module's pickler say what an object is made of, by the hooks that Python's picklers have for it:
        so cloudpickle writes classes of `__main__` whole. What is cresset's keeps its names.
        """
        asked = getattr(module, "Pickler", object)
        asked = asked(io.BytesIO(), self.proto) if hasattr(asked, "reducer_override") else None
        if asked is None:
            raise ValueError(
                f"save: pickle_module must be Python's pickle or one whose Pickler has a reducer_override, got "
                f"{getattr(module, '__name__', module)}; the names in the file are PyTorch's"
            )

        def reducer_override(obj):
            home = getattr(obj, "__module__", None)
            ours = isinstance(home, str) and home.partition(".")[0] in ("torch", "cresset")
            return NotImplemented if ours else asked.reducer_override(obj)

        self.reducer_override = reducer_override
        self.dispatch_table = getattr(asked, "dispatch_table", copyreg.dispatch_table)

    def save(self, obj, save_persistent_id=True):
        # Numbers and text, most of what a file has, need no persistent id; written here they take half the time.
        kind = type(obj)
        if kind is str:
            known = self.memo.get(id(obj))
            return self.save_str(obj) if known is None else self.write(self.get(known[0]))
        if kind is int and 0 <= obj < 256:
            return self.write(_SMALL_INTEGERS[obj])
        if kind is int or kind is float or kind is bool:
            return self.dispatch[kind](self, obj)
        return super().save(obj, save_persistent_id)

    def write_name(self, obj, module, name):
        """Opcodes that put the global `module`.`name` on the stack."""
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")
        self.memoize(obj)

    def save_global(self, obj, name=None):
        module = getattr(obj, "__module__", None)
        if isinstance(module, str) and (module in ("torch", "cresset") or module.startswith("cresset.")):
            module, name = torch_name(module, name or obj.__qualname__)
            if module == "torch.storage" and name in ("UntypedStorage", "TypedStorage") or "." not in name:
                return self.write_name(obj, module, name)
        try:
            super().save_global(obj, name)
        except pickle.PicklingError:
            pickle.dumps(obj)  # raises what `pickle` itself does: for a local class another error than its Python form
            raise

    dispatch[types.FunctionType] = save_global

    def save_type(self, obj):
        if obj in (type(None), type(NotImplemented), type(...)):
            return super().save_type(obj)
        self.save_global(obj)

    dispatch[type] = save_type

    def save_word(self, obj):
        """dtypes and memory formats are names in torch."""
        self.write_name(obj, "torch", str(obj).removeprefix("torch."))

    dispatch[_native.dtype] = dispatch[_native.memory_format] = save_word

    def save_function(self, obj):
        """Operators, and functions that obey __torch_function__, are functions in torch or in its nn.functional."""
        from cresset.nn import functional

        obj = _native.function_behind(obj)
        here = vars(cresset).get(obj.__name__) is not obj and vars(functional).get(obj.__name__) is obj
        self.write_name(obj, "torch.nn.functional" if here else "torch", obj.__name__)

    dispatch[_native.Operator] = dispatch[OVERRIDABLE] = save_function

    def save_layout(self, obj):
        self.save_reduce(_get_layout, (str(obj),), obj=obj)

    dispatch[_native.layout] = save_layout

    def save_device(self, obj):
        self.save_reduce(_native.device, (obj.type,) if obj.index is None else (obj.type, obj.index), obj=obj)

    dispatch[_native.device] = save_device

    def save_size(self, obj):
        self.save_reduce(_native.Size, (tuple(obj),), obj=obj)

    dispatch[_native.Size] = save_size

    def save_reduce(self, func, args, *rest, **keywords):
        if func is _utils._rebuild_from_type_v2 and args[1] is None:
            args = (args[0], Tensor, *args[2:])
        elif (getattr(func, "__module__", None) or "").startswith("cresset.sparse."):  # None: of a class's own method
            func, args = _utils._rebuild_sparse_tensor, _sparse_parts(func.__name__, args)
        if options.skips_data():
            _check_can_skip(func)
        super().save_reduce(func, args, *rest, **keywords)


def _check_can_skip(func):
    """Whether what `func` rebuilds makes sense without its data."""
    if func is _utils._rebuild_nested_tensor:
        raise RuntimeError(
            "save: Cannot serialize nested tensor under skip_data context manager: where its components begin is data"
        )
    if func is _utils._rebuild_meta_tensor_no_storage:
        warnings.warn(
            "save: Serializing tensors on the meta device under skip_data context manager is a no-op: there is none",
            stacklevel=3,
        )


def _sparse_parts(name, args):
    """PyTorch's arguments for a sparse tensor: (layout, parts with the size)."""
    if name == "rebuild_coo":
        indices, values, size, is_coalesced = args
        return _native.sparse_coo, (indices, values, _native.Size(size), is_coalesced)
    first, second, values, size, layout = args
    return layout, (first, second, values, _native.Size(size))


def _get_layout(name):
    """The layout with this name."""
    layout = getattr(_native, name.removeprefix("torch."), None)
    if not isinstance(layout, _native.layout):
        raise ValueError(f"there is no layout {name!r}")
    return layout


_get_layout.__module__ = "cresset.serialization"


class Storages:
    """The storages that a pickle refers to, each with a key and one dtype."""

    def __init__(self):
        self.by_address, self.kept, self.dtypes = {}, {}, {}

    def describe(self, obj):
        """(untyped storage, class name, key, location, number of elements) of a storage; None for anything else."""
        if isinstance(obj, TypedStorage):
            storage, dtype = obj._untyped_storage, obj.dtype
            kind, count = getattr(cresset, obj._pickle_storage_type() or "", UntypedStorage), len(obj)
            if kind is UntypedStorage:
                dtype, count = _native.uint8, storage.nbytes()
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind, count = obj, _native.uint8, UntypedStorage, obj.nbytes()
        else:
            return None
        address = storage._cdata
        if storage.nbytes() and storage.device.type != "meta":
            address = (
                storage.data_ptr(),
                storage.nbytes(),
            )  # not the storage's own: x.data has another one on the same memory
            # Tensors of one storage must agree on the dtype, since a file has one name for it.
            if self.dtypes.setdefault(storage.data_ptr(), dtype) != dtype:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as different types "
                    f"({self.dtypes[storage.data_ptr()]} and {dtype}). Clone one of them"
                )
        key = self.by_address.setdefault(address, str(len(self.by_address)))
        self.kept[key] = (storage, dtype)  # kept, so that no other storage gets the address meanwhile
        return storage, kind, key, location_tag(storage), count


def data_of(storage):
    """The bytes of a storage, on the host."""
    if options.skips_data() or storage.device.type == "meta":
        return memoryview(bytes(storage.nbytes()))
    return memoryview(storage.cpu()._bytes)


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Write an object to a file that cresset and PyTorch load.

    A path is written whole or not at all: the data goes to a new file in the same folder, which takes the place of the
        old one in one step.

    Args:
        obj: tensors, modules' and optimizers' state_dicts, and containers of them.
        f: a path, or an object with `write`.
        pickle_module: whose Pickler's `reducer_override` says what objects are made of: pickle, or cloudpickle.
        pickle_protocol: of the pickle inside.

    >>> import io
    >>> file = io.BytesIO()
    >>> cresset.save({"weight": cresset.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> cresset.load(file)
    {'weight': tensor([1., 1.])}
    """
    write = _write_archive if _use_new_zipfile_serialization else _write_stream
    settings = {
        "protocol": pickle_protocol,
        "byteorder": not _disable_byteorder_record,
        "module": pickle_module,
    }
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.splitext(os.path.basename(os.fsdecode(path)))[0] or "archive"
        with replaced_when_whole(path) as file:
            write(obj, file, folder, **settings)
    elif not hasattr(f, "write"):
        raise AttributeError(f"save: expected a path or an object with a 'write' attribute, got {type(f).__name__}")
    else:
        write(obj, f, "archive", **settings)
        if hasattr(f, "flush"):
            f.flush()  # somebody may open the file by its name


def _write_archive(obj, file, folder, protocol, byteorder, module):
    storages = Storages()

    def persistent_id(value):
        if isinstance(value, (TypedStorage, UntypedStorage)):
            _, kind, key, location, count = storages.describe(value)
            return ("storage", kind, key, location, count)
        return None

    pickled = io.BytesIO()
    Pickler(pickled, protocol, persistent_id, module).dump(obj)
    archive = ArchiveWriter(file, folder)
    archive.write("data.pkl", pickled.getvalue())
    archive.write(".format_version", b"1")
    archive.write(".storage_alignment", str(archive.alignment).encode())
    if byteorder:
        archive.write("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.kept.items():
        if options.skips_data():
            archive.write_room(f"data/{key}", storage.nbytes())
        else:
            archive.write(f"data/{key}", data_of(storage))
    archive.write("version", b"3\n")
    names = "".join(title.decode() for title, *_ in archive.entries)
    import zlib

    archive.write(".data/serialization_id", f"{zlib.crc32(names.encode()):020d}{archive.checksums:020d}".encode())
    archive.close()


def _write_stream(obj, file, folder, protocol, byteorder, module):
    """The format before archives: four pickles, then the storages one behind the other."""
    storages = Storages()

    def persistent_id(value):
        if isinstance(value, (TypedStorage, UntypedStorage)):
            _, kind, key, location, count = storages.describe(value)
            return ("storage", cresset.ByteStorage if kind is UntypedStorage else kind, key, location, count, None)
        return None

    sizes = {"short": 2, "int": 4, "long": 4}
    for value in (
        MAGIC_NUMBER,
        PROTOCOL_VERSION,
        {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes},
    ):
        file.write(pickle.dumps(value, protocol=protocol))
    pickled = io.BytesIO()
    Pickler(pickled, protocol, persistent_id, module).dump(obj)
    file.write(pickled.getvalue())
    keys = sorted(storages.kept)
    file.write(pickle.dumps(keys, protocol=protocol))
    for key in keys:
        storage, dtype = storages.kept[key]
        file.write(struct.pack("<q", storage.nbytes() // dtype.itemsize))
        file.write(data_of(storage))


@contextlib.contextmanager
def replaced_when_whole(path):
    """A new file that takes the place of `path` in one step when it is complete; on an error `path` stays as it was."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):  # a pipe, /dev/stdout: there is nothing to replace
        if os.path.isdir(target):
            raise IsADirectoryError(f"save: {os.fsdecode(path)} is a folder")
        with open(target, "wb") as file:
            yield file
        return
    folder, name = os.path.split(os.fsdecode(target))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fsdecode(path))} does not exist.")
    clear_abandoned(folder)
    file, temporary = _new_file(folder, name)
    try:
        with file:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, target)  # before the file is closed, which would give up its lock
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # the folder's entry, too, where the system lets us
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


# Note [Files of killed saves]
# A save that is killed cannot remove its temporary file; the next save into the folder does. As long as a process
# writes it, the file is locked with flock, which the system gives up for a process that dies, whoever it was: what can
# be locked has no owner. Folders are shared between machines, and not every network file system shares locks, so the
# name carries the machine, and only files of this one are looked at.


def _machine():
    import platform
    import zlib

    return f"{zlib.crc32(platform.node().encode()):08x}"


def _lock(file, wait):
    """Lock an open file for this process; False if another one has it and we do not wait, or there are no locks
    here."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _new_file(folder, name):
    """(a new file beside `name`, open and locked, its path)."""
    while True:
        temporary = os.path.join(folder, f".{name[:50]}.{_machine()}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        file = open(descriptor, "r+b")  # noqa: SIM115  (closed by the caller)
        _lock(file, wait=True)
        if os.path.exists(temporary):  # else somebody took it for abandoned between its making and its lock
            return file, temporary
        file.close()


def clear_abandoned(folder):
    """Remove the temporary files of saves whose processes are gone. See Note [Files of killed saves]."""
    temporary = re.compile(rf"\..{{1,50}}\.{_machine()}\.\d+\.[0-9a-f]{{8}}\.tmp", re.DOTALL)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.endswith(".tmp") and temporary.fullmatch(entry.name)):
                continue
            with contextlib.suppress(OSError):
                descriptor = os.open(
                    entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
                )
                with open(descriptor, "r+b") as file:
                    if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(file, wait=False):
                        os.unlink(entry.path)
