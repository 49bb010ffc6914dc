"""Storages: the memory behind tensors, as bytes (UntypedStorage) or as elements (TypedStorage)."""

import numbers
import sys
from functools import partialmethod

from . import _native


class _StorageBase:
    """What isinstance knows a storage of bytes by; and its bytes as numbers of a dtype."""

    filename = None  # of the file whose memory it is, if writes reach it
    _checkpoint_offset = None  # of the meta device: where its bytes lie in the file that it was loaded from

    def _converted(self, dtype):
        return TypedStorage._of(self._bytes.to(dtype))

    double = partialmethod(_converted, _native.float64)
    float = partialmethod(_converted, _native.float32)
    half = partialmethod(_converted, _native.float16)
    bfloat16 = partialmethod(_converted, _native.bfloat16)
    long = partialmethod(_converted, _native.int64)
    int = partialmethod(_converted, _native.int32)
    short = partialmethod(_converted, _native.int16)
    char = partialmethod(_converted, _native.int8)
    byte = partialmethod(_converted, _native.uint8)
    bool = partialmethod(_converted, _native.bool)


class UntypedStorage(_native.StorageBase, _StorageBase):
    """A block of bytes that tensors are views of. UntypedStorage(n) makes a new one of n bytes, UntypedStorage([1, 2])
    one with these bytes.

    >>> cresset.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    _fake_device = None  # where the memory of a fake tensor is said to be

    def __init__(self, size=0, *, device=None):
        if isinstance(size, numbers.Integral):
            import cresset

            memory = cresset.empty(size, dtype=_native.uint8, device=device)
        else:
            memory = _native.make_tensor(size, _native.uint8, device)
        _native.set_memory(self, memory)

    @classmethod
    def _of(cls, tensor):
        """The storage of a tensor: the same object as long as anybody holds the memory."""
        return _native.storage_of(tensor, cls)

    def data_ptr(self):
        return _native.storage_info(self)[1]

    @property
    def _cdata(self):
        return _native.storage_info(self)[0]

    def nbytes(self):
        return _native.storage_info(self)[2]

    size = nbytes

    def __len__(self):
        return self.nbytes()

    def __getitem__(self, index):
        _refuse_meta(self)
        if not isinstance(index, slice):
            return self._bytes[index].item()
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        if self.device.type != "cpu":
            raise RuntimeError(f"UntypedStorage: a part of a storage can be had on the CPU, not on {self.device}")
        # A part begins at the address of its first byte, where elements of any dtype may be read: it shares the memory
        # if that address is one for them, and is a copy otherwise.
        part = self._bytes[start : max(start, stop)]
        shares = part.numel() > 0 and (self.data_ptr() + start) % 16 == 0
        return type(self)._of(_native.from_buffer(memoryview(part)) if shares else part.clone())

    def __setitem__(self, index, value):
        self._bytes[index] = value

    def __iter__(self):
        return iter(self._bytes.tolist())

    def tolist(self):
        return self._bytes.tolist()

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self):
        return hash(self._cdata)

    @property
    def device(self):
        return self._bytes.device

    @property
    def is_cuda(self):
        return self._bytes.is_cuda

    def element_size(self):
        return 1

    def cpu(self):
        return self if self.device.type == "cpu" else type(self)._of(self._bytes.cpu())

    def cuda(self, device=None, non_blocking=False):
        return self if self.is_cuda and device is None else UntypedStorage._of(self._bytes.cuda(device, non_blocking))

    def clone(self):
        return type(self)._of(self._bytes.clone())

    def copy_(self, other, non_blocking=None):
        if self.nbytes() != other.nbytes():
            raise RuntimeError(
                f"copy_: size does not match, self was {self.nbytes()} bytes but src was {other.nbytes()} bytes"
            )
        self._bytes.copy_(other._bytes, bool(non_blocking))
        return self

    def fill_(self, value):
        self._bytes.fill_(value)
        return self

    def resize_(self, size):
        _native.resize_storage(self._bytes, size)
        return self

    def resizable(self):
        return _native.storage_is_resizable(self._bytes)

    def get_device(self):
        return self._bytes.get_device() if self.is_cuda else None

    def byteswap(self, dtype):
        """Turn the bytes of each element of `dtype` round, in place."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._bytes.copy_(self._bytes.view(-1, width).flip(1).view(-1))

    def type(self):
        return f"torch.{'cuda' if self.is_cuda else 'storage'}.UntypedStorage"

    def new(self):
        return type(self)(device=self.device)

    def untyped(self):
        return self

    def to(self, *, device, non_blocking=False):
        return type(self)._of(self._bytes.to(device, non_blocking=non_blocking))

    def is_shared(self):
        return self._bytes.is_shared()

    def share_memory_(self):
        _refuse_sharing(self)
        self._bytes.share_memory_()
        return self

    def _share_fd_cpu_(self):
        """Move the bytes into shared memory; its file descriptor, which stays this storage's, and how many they are."""
        _refuse_sharing(self)
        from .tensors import shared_memory

        return shared_memory.share(self._bytes).descriptor, self.nbytes()

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A new storage of `size` bytes in shared memory; of a GPU's, which other processes can open in any case."""
        made = cls(size, device=device)
        return made if made.is_cuda else made.share_memory_()

    @classmethod
    def _new_shared_fd_cpu(cls, descriptor, size):
        """A storage on the shared memory behind a file descriptor, which stays the caller's."""
        import os

        from .tensors import shared_memory

        return cls._on(memoryview(shared_memory.open_block(os.dup(descriptor), size)).cast("B")[:size])

    def _share_filename_cpu_(self):
        _refuse_sharing(self)
        raise RuntimeError("_share_filename_cpu_: shared memory has no name here; share it by _share_fd_cpu_()")

    def _write_file(self, file, is_real_file, save_size, element_size):
        """Write the bytes to a file, after the number of elements (8 bytes) if `save_size`."""
        if self.device.type == "meta":
            raise NotImplementedError("_write_file: Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(memoryview(self._bytes.cpu()))

    def _swap_data_ptr_(self, other):
        """Let each storage have the other's memory; the views of both stay views of them."""
        _native.swap_memory(self._bytes, other._bytes)

    def _fix_weakref(self):
        """Let weak references find the storage again: they always do here."""

    def is_pinned(self, device=None):
        return self._bytes.is_pinned() and _native.device(device or "cuda").type == "cuda"

    def __copy__(self):
        return self.clone()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def __deepcopy__(self, memo):
        # By its memory: x.data has a storage of its own, with a version of its own, on the memory of x.
        place = (self.data_ptr(), self.nbytes()) if self.data_ptr() else self._cdata
        if place not in memo:
            memo[place] = self.clone()
        return memo[place]

    def __reduce__(self):
        if self.device.type == "meta":
            return UntypedStorage._meta, (self.nbytes(),)
        where = () if self.device.type == "cpu" else (str(self.device),)
        return _storage_from_bytes, (bytes(memoryview(self._bytes.cpu())), *where)

    @classmethod
    def _meta(cls, size):
        return cls(size, device="meta")

    @classmethod
    def _on(cls, buffer):
        """A storage on the memory of a bytes-like object."""
        return cls._of(_native.from_buffer(memoryview(buffer).cast("B")))

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, dtype=None):
        """A copy of `count` elements (all there are, if negative) of a bytes-like object, from byte `offset` on.

        Args:
            byte_order: of the elements in `buffer`, "native", "little" or "big"; they are turned into this machine's.
                Needed unless one byte wide.
            dtype: of the elements; it must be given.

        >>> cresset.UntypedStorage.from_buffer(b"\\0\\1\\0\\2", "big", dtype=cresset.int16).tolist()
        [1, 0, 2, 0]
        """
        return cls._of(_elements_of(buffer, byte_order, count, offset, dtype))

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """A storage on a file's first bytes. With `shared` writes reach the file, which is made `nbytes` long if it is
        shorter; else they stay here.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     cresset.UntypedStorage.from_file(file.name, shared=True, nbytes=3).tolist()
        [0, 0, 0]
        """
        import mmap
        import os

        if not shared and os.path.getsize(filename) < nbytes:
            raise RuntimeError(
                f"from_file: {filename} has {os.path.getsize(filename)} bytes, fewer than nbytes={nbytes}"
            )
        with open(filename, "r+b" if shared and os.path.exists(filename) else "w+b" if shared else "rb") as file:
            if shared and os.fstat(file.fileno()).st_size < nbytes:
                file.truncate(nbytes)
            if nbytes == 0:
                return cls(0)
            flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
            made = cls._on(mmap.mmap(file.fileno(), nbytes, flags, mmap.PROT_READ | mmap.PROT_WRITE))
        if shared:
            made.filename = filename
        return made

    def __repr__(self):
        return _shown(self, f"torch.storage.UntypedStorage(device={self.device})")


def _shown(storage, what):
    """A storage as PyTorch prints it: an element a line, and what it is."""
    is_there = storage.device.type != "meta" and not isinstance(storage, PythonStorage)
    elements = " " + "\n ".join(map(str, storage.tolist())) if is_there else "..."
    return f"{elements}\n[{what} of size {len(storage)}]"


def _refused(name):
    def method(self, *args, **kwargs):
        raise RuntimeError(f"Attempted to call {name}() on an invalid python storage.")

    return method


class PythonStorage(UntypedStorage):
    """For the memory of a tensor whose class answers for it with __torch_dispatch__: a size and a device."""

    @classmethod
    def of(cls, tensor):
        """The one of a tensor."""
        found = vars(tensor).get("_python_storage")
        if found is None:
            found = cls(tensor.numel() * tensor.element_size(), device="meta")
            found._said_device = tensor.device
            vars(tensor)["_python_storage"] = found
        return found

    @property
    def device(self):
        return self._said_device

    def data_ptr(self):
        raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")

    copy_, fill_, resize_, clone, _write_file = map(_refused, ("copy_", "fill_", "resize_", "copy_", "_write_file"))
    __getitem__, __iter__, tolist, cpu, __reduce__ = map(
        _refused, ("__getitem__", "__iter__", "tolist", "cpu", "__reduce__")
    )


def _refuse_meta(storage):
    if storage.device.type == "meta":
        raise NotImplementedError("Not available for 'meta' device type: the storage has no memory")


def _refuse_sharing(storage):
    if storage.device.type != "cpu":
        raise RuntimeError(f"sharing memory is only available on CPU, the storage is on {storage.device}")


def is_storage(obj):
    """Whether `obj` is a storage.

    >>> cresset.is_storage(cresset.zeros(2).untyped_storage())
    True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def _elements_of(buffer, byte_order, count, offset, dtype):
    """The elements of a bytes-like object, as a new tensor; PyTorch's rules."""
    if dtype is None:
        raise RuntimeError("from_buffer: argument 'dtype' cannot be None")
    if not isinstance(dtype, _native.dtype):
        raise RuntimeError(f"from_buffer: argument 'dtype' must be of type torch.dtype, got {dtype!r}")
    width = dtype.itemsize
    if byte_order is None:
        if width > 1:
            raise RuntimeError(
                f"from_buffer: missing required argument 'byte_order' (pos 2), as {dtype} has {width} bytes"
            )
        byte_order = "native"
    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"from_buffer: invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')")
    memory = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(memory):
        raise ValueError(
            f"from_buffer: offset must be non-negative and no greater than the buffer's length, {len(memory)} bytes, "
            f"but got {offset}"
        )
    memory = memory[offset:]
    if count < 0:
        if len(memory) % width:
            raise ValueError(
                f"from_buffer: the buffer's size after the offset ({len(memory)}) must be a multiple of element size "
                f"({width})"
            )
        count = len(memory) // width
    elif count * width > len(memory):
        raise ValueError(
            f"from_buffer: buffer has only {len(memory)} bytes after offset {offset}, but specified {count} elements "
            f"of {width}"
        )
    if count == 0:
        return _native.make_tensor([], _native.uint8, None)
    made = _native.from_buffer(bytearray(memory[: count * width]))
    if dtype == _native.bool:
        return made.ne(0)
    if byte_order not in ("native", sys.byteorder):
        part = width // 2 if dtype.is_complex else width
        made = made.view(-1, part).flip(1).reshape(-1)
    return made


def _storage_from_bytes(data, device="cpu"):
    # A copy: the memory of others cannot be resized.
    return (
        UntypedStorage._of(_native.from_buffer(bytearray(data)).to(device, copy=True))
        if data
        else UntypedStorage(0, device=device)
    )


class TypedStorage:
    """A storage seen as elements of one dtype: TypedStorage(3, dtype=cresset.float32), or around an UntypedStorage by
    `wrap_storage`.

    >>> cresset.TypedStorage([1.0, 2.0], dtype=cresset.float64)[1]
    2.0
    """

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if wrap_storage is None:
            if len(args) > 1:
                raise RuntimeError(
                    f"{self.__class__.__name__}: expected a size, a sequence or a storage, got {len(args)} arguments"
                )
            dtype = dtype or _native.get_default_dtype()
            given = args[0] if args else 0
            if isinstance(given, (UntypedStorage, TypedStorage)):
                wrap_storage = getattr(given, "_untyped_storage", given)
            elif isinstance(given, numbers.Integral):
                wrap_storage = UntypedStorage(given * dtype.itemsize, device=device)
            else:
                wrap_storage = _native.make_tensor(given, HELD_AS.get(dtype, dtype), device).untyped_storage()
        elif not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @classmethod
    def _of(cls, tensor):
        return cls(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)

    def _elements(self):
        return self._untyped_storage._bytes.view(HELD_AS.get(self.dtype, self.dtype))

    def untyped(self):
        return self._untyped_storage

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self._untyped_storage.is_cuda

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = _size = __len__

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _nbytes, _element_size, _data_ptr = (
        nbytes,
        element_size,
        data_ptr,
    )  # PyTorch's own, without a warning that it is deprecated

    def __getitem__(self, index):
        _refuse_meta(self)
        return self._elements()[index].item()

    def __setitem__(self, index, value):
        self._elements()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        _refuse_meta(self)
        return self._elements().tolist()

    _setitem = __setitem__

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    _is_shared, _share_memory_ = is_shared, share_memory_

    def _new_shared(self, size, *, device=None):
        """A new storage of `size` elements of this one's dtype, in shared memory."""
        bytes_ = UntypedStorage._new_shared(size * self.element_size(), device=device or "cpu")
        return TypedStorage(wrap_storage=bytes_, dtype=self.dtype)

    def _share_fd_cpu_(self):
        return self._untyped_storage._share_fd_cpu_()

    def _share_filename_cpu_(self):
        return self._untyped_storage._share_filename_cpu_()

    def _write_file(self, *args):
        self._untyped_storage._write_file(*args)

    def is_pinned(self, device=None):
        return self._untyped_storage.is_pinned(device)

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def copy_(self, source, non_blocking=None):
        self._elements().copy_(source._elements(), bool(non_blocking))
        return self

    def fill_(self, value):
        self._elements().fill_(value)
        return self

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    _resize_ = resize_

    def double(self):
        return self.type(_native.float64)

    def float(self):
        return self.type(_native.float32)

    def half(self):
        return self.type(_native.float16)

    def bfloat16(self):
        return self.type(_native.bfloat16)

    def long(self):
        return self.type(_native.int64)

    def int(self):
        return self.type(_native.int32)

    def short(self):
        return self.type(_native.int16)

    def char(self):
        return self.type(_native.int8)

    def byte(self):
        return self.type(_native.uint8)

    def bool(self):
        return self.type(_native.bool)

    def complex_double(self):
        return self.type(_native.complex128)

    def complex_float(self):
        return self.type(_native.complex64)

    def resizable(self):
        return self._untyped_storage.resizable()

    def get_device(self):
        return self._untyped_storage.get_device()

    def to(self, *, device, non_blocking=False):
        moved = self._untyped_storage.to(device=device, non_blocking=non_blocking)
        return TypedStorage(wrap_storage=moved, dtype=self.dtype)

    def pin_memory(self, device=None):
        return TypedStorage._of(self._elements().pin_memory(device))

    @property
    def filename(self):
        return self._untyped_storage.filename

    def __copy__(self):
        return self.clone()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def cpu(self):
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def type(self, dtype=None, non_blocking=False):
        """The name of the storage's type; with a dtype or such a class, the elements converted to it."""
        if dtype is None:
            name = self._pickle_storage_type()
            return f"torch.storage.{type(self).__name__}" if name is None else f"torch.{name}"
        dtype = getattr(dtype, "dtype", dtype)
        return TypedStorage._of(self._elements().to(dtype, non_blocking))

    def _pickle_storage_type(self):
        """The name of PyTorch's class of storages of this dtype; None: it has none."""
        word = next((word for word, kind in STORAGE_TYPES.items() if kind.dtype == self.dtype), None)
        return None if word is None else word + "Storage"

    pickle_storage_type = _pickle_storage_type

    def __eq__(self, other):
        return (
            isinstance(other, TypedStorage)
            and self.dtype == other.dtype
            and self._untyped_storage == other._untyped_storage
        )

    def __hash__(self):
        return hash(self._untyped_storage)

    def __deepcopy__(self, memo):
        import copy

        return TypedStorage(wrap_storage=copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype)

    _deepcopy = __deepcopy__

    def __reduce__(self):  # each with bytes of its own, though the untyped storage may be one object
        return _typed_storage_made, (self.dtype, *self._untyped_storage.__reduce__())

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, dtype=None):
        """A copy of `count` elements of a bytes-like object, from byte `offset` on; see UntypedStorage.from_buffer.

        >>> cresset.FloatStorage.from_buffer(b"\\x3f\\x80\\0\\0", "big").tolist()
        [1.0]
        """
        fixed = getattr(cls, "dtype", None)
        if fixed is not None and dtype is not None:
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and "
                f"TypedStorage.from_buffer, not in {cls.__name__}'s"
            )
        dtype = fixed or dtype or _native.get_default_dtype()
        return TypedStorage(
            wrap_storage=UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype), dtype=dtype
        )

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """A storage of `size` elements on a file; see UntypedStorage.from_file."""
        dtype = cls.dtype if isinstance(getattr(cls, "dtype", None), _native.dtype) else _native.get_default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype)

    def __repr__(self):
        return _shown(self, f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})")


# What quantized elements are kept as.
HELD_AS = {
    _native.quint8: _native.uint8, _native.qint8: _native.int8, _native.qint32: _native.int32,
    _native.quint4x2: _native.uint8, _native.quint2x4: _native.uint8,
}  # fmt: skip


def _typed_storage_made(dtype, make, arguments):
    return _typed_storage(make(*arguments), dtype)


def _typed_storage(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


class _StorageOfType(type):
    """The type of FloatStorage, LongStorage, ...: each makes TypedStorages of its dtype, and knows them as its
    instances.
    """

    def __call__(cls, *args, **kwargs):
        return TypedStorage(*args, **{"dtype": cls.dtype, **kwargs})

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype


STORAGE_TYPES = {
    word: _StorageOfType(word + "Storage", (),
        {"dtype": getattr(_native, name), "_dtype": getattr(_native, name), "is_cuda": False, "__module__": "torch",
            "__doc__": f"A TypedStorage of {name} elements; an older name.",
            "from_file": vars(TypedStorage)["from_file"], "from_buffer": vars(TypedStorage)["from_buffer"]})
    for word, name in {
        "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
        "Int": "int32", "Short": "int16", "Char": "int8",
        "Byte": "uint8", "Bool": "bool", "ComplexDouble": "complex128", "ComplexFloat": "complex64",
        "QUInt8": "quint8", "QInt8": "qint8", "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4",
    }.items()
}  # fmt: skip


def _dtype_to_storage_type_map():
    """The name of PyTorch's class of storages for each dtype that has one."""
    return {kind.dtype: kind.__name__ for kind in STORAGE_TYPES.values()}


legacy_storages = {kind.__name__: kind for kind in STORAGE_TYPES.values()}
