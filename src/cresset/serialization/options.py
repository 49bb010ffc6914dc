"""Settings of save and load: byte order, memory mapping, checksums, alignment, and whether the data of tensors is left
out.
"""

import contextlib
import enum
import mmap
import threading

__all__ = [
    "LoadEndianness", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
    "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data",
]  # fmt: skip


class load:
    """Settings of load, seen as `torch.utils.serialization.config.load`."""

    mmap_flags = mmap.MAP_PRIVATE  # see set_default_mmap_options
    mmap = False  # what mmap=None means
    endianness = None  # see set_default_load_endianness
    calculate_storage_offsets = False  # nothing depends on it: what a file says of its records is always compared


class save:
    """Settings of save, seen as `torch.utils.serialization.config.save`."""

    compute_crc32 = True  # see set_crc32_options
    use_pinned_memory_for_d2h = False  # nothing depends on it: one storage after another comes from the device
    storage_alignment = 64  # each record starts at a multiple of so many bytes


class _OfThread(threading.local):
    skip_data = False
    materialize_fake_tensors = False


_serialization_tls = _OfThread()  # the settings of `with` blocks are those of their thread


class LoadEndianness(enum.Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness():
    """The byte order that load assumes for files that do not say theirs; None: this machine's."""
    return load.endianness


def set_default_load_endianness(endianness):
    """Say which byte order load assumes for files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError(
            f"set_default_load_endianness: expected a LoadEndianness or None, got {type(endianness).__name__}"
        )
    load.endianness = endianness


def get_default_mmap_options():
    """How load(..., mmap=True) maps a file: mmap.MAP_PRIVATE (changes stay in memory) or mmap.MAP_SHARED."""
    return load.mmap_flags


mmap_flags = get_default_mmap_options


class set_default_mmap_options:
    """Map files with MAP_PRIVATE or MAP_SHARED from now on, or inside a `with`.

    >>> import mmap
    >>> with cresset.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     cresset.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags):
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                f"mmap.MAP_SHARED, but got {flags}"
            )
        self.before, load.mmap_flags = load.mmap_flags, flags

    def __enter__(self):
        pass

    def __exit__(self, *_):
        load.mmap_flags = self.before


def get_crc32_options():
    """Whether save writes checksums and load compares them."""
    return save.compute_crc32


def set_crc32_options(compute_crc32):
    """Whether save writes checksums and load compares them. Without them large files are quicker, and damage goes
    unseen.
    """
    save.compute_crc32 = bool(compute_crc32)


def skips_data():
    return _serialization_tls.skip_data


@contextlib.contextmanager
def skip_data(materialize_fake_tensors=False):
    """Inside, save leaves room for the data of tensors without writing it, and load leaves their memory as it comes.

    Args:
        materialize_fake_tensors: save fake tensors as if they were on their devices, with room for their data.

    >>> import io
    >>> file = io.BytesIO()
    >>> with cresset.serialization.skip_data():
    ...     cresset.save(cresset.ones(2), file)
    """
    now = _serialization_tls
    before = now.skip_data, now.materialize_fake_tensors
    now.skip_data, now.materialize_fake_tensors = True, materialize_fake_tensors
    try:
        yield
    finally:
        now.skip_data, now.materialize_fake_tensors = before
