"""Memory that several processes see: each block is a file without a name, which goes to another process as a file
descriptor.
"""

import ctypes
import mmap
import os
import tempfile
import weakref

from .. import _native

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

_by_address, _by_file = weakref.WeakValueDictionary(), weakref.WeakValueDictionary()


def _release(descriptor, address, size):
    _libc.munmap(address, size)
    os.close(descriptor)


def _map(descriptor, size):
    """The file as an array of bytes, which unmaps itself."""
    address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        os.close(descriptor)
        raise RuntimeError(f"share_memory_: the system gives no shared memory of {size} bytes ({os.strerror(number)})")
    block = (ctypes.c_ubyte * size).from_address(address)
    block.descriptor, block.size = descriptor, size
    weakref.finalize(block, _release, descriptor, address, size).atexit = False
    status = os.fstat(descriptor)
    _by_address[address] = _by_file[status.st_dev, status.st_ino] = block
    return block


def new_block(size):
    """Fresh shared memory of at least one byte."""
    size = max(size, 1)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("cresset", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return _map(descriptor, size)


def open_block(descriptor, size):
    """The block behind a descriptor, which is ours from now on. A block that this process has already is given
    again."""
    status = os.fstat(descriptor)
    block = _by_file.get((status.st_dev, status.st_ino))
    if block is None:
        return _map(descriptor, max(size, 1))
    os.close(descriptor)
    return block


def block_of(tensor):
    """The block that holds a tensor's storage, or None."""
    return _by_address.get(_native.storage_info(tensor)[1])


def is_shared(tensor):
    return _native.storage_info(tensor)[3] or block_of(tensor) is not None


def share(tensor):
    """Move a tensor's storage into a block, if it lies in none."""
    if block_of(tensor) is None:
        _native.share_storage(tensor, new_block(_native.storage_info(tensor)[2]))
    return block_of(tensor)
