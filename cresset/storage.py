"""Storages: the memory behind tensors, as bytes (UntypedStorage) or as elements (TypedStorage)."""

from . import _native


class UntypedStorage:
    """A block of bytes that tensors are views of. UntypedStorage(n) makes a new one of n bytes."""

    def __init__(self, size=0, *, device=None):
        data = size if not isinstance(size, int) else [0] * size
        self._bytes = _native.make_tensor(data, _native.uint8, device)

    @classmethod
    def _of(cls, tensor):
        storage = cls.__new__(cls)
        storage._bytes = _native.storage_bytes(tensor)
        return storage

    def data_ptr(self):
        return _native.storage_info(self._bytes)[1]

    @property
    def _cdata(self):
        return _native.storage_info(self._bytes)[0]

    def nbytes(self):
        return _native.storage_info(self._bytes)[2]

    size = nbytes

    def __len__(self):
        return self.nbytes()

    def __getitem__(self, index):
        return self._bytes[index].item() if isinstance(index, int) else self._bytes[index]

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
        return self

    def clone(self):
        return UntypedStorage._of(self._bytes.clone())

    def copy_(self, other, non_blocking=None):
        self._bytes.copy_(other._bytes)
        return self

    def fill_(self, value):
        self._bytes.fill_(value)
        return self

    def resize_(self, size):
        _native.resize_storage(self._bytes, size)
        self._bytes = _native.storage_bytes(self._bytes)
        return self

    def is_shared(self):
        return _native.storage_info(self._bytes)[3]

    def share_memory_(self):
        self._bytes.share_memory_()
        return self

    def is_pinned(self, device=None):
        return self._bytes.is_pinned()

    def __deepcopy__(self, memo):
        if self._cdata not in memo:
            memo[self._cdata] = self.clone()
        return memo[self._cdata]

    def __reduce__(self):
        return _storage_from_bytes, (bytes(memoryview(self._bytes)),)

    def __repr__(self):
        return f"{self.__class__.__name__}(device={self.device}) of size {self.nbytes()}"


def is_storage(obj):
    """Whether `obj` is a storage.

    >>> cresset.is_storage(cresset.zeros(2).untyped_storage())
    True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def _storage_from_bytes(data):
    return UntypedStorage._of(_native.from_buffer(bytearray(data)))


class TypedStorage:
    """A storage seen as elements of one dtype."""

    def __init__(self, *, wrap_storage, dtype):
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @classmethod
    def _of(cls, tensor):
        return cls(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)

    def _elements(self):
        return self._untyped_storage._bytes.view(self.dtype)

    def untyped(self):
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self._untyped_storage.is_cuda

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = __len__

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    def __getitem__(self, index):
        return self._elements()[index].item()

    def __setitem__(self, index, value):
        self._elements()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._elements().tolist()

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def __repr__(self):
        return f"{self.__class__.__name__}(dtype={self.dtype}, device={self.device}) of size {len(self)}"
