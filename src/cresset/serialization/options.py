"""Settings of save and load: byte order, memory mapping, checksums, and whether the data of tensors is left out."""

import contextlib
import enum
import mmap

__all__ = [
    "LoadEndianness", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
    "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data",
]  # fmt: skip

_settings = {"endianness": None, "mmap": mmap.MAP_PRIVATE, "checksums": True, "skip": False}


class LoadEndianness(enum.Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness():
    """The byte order that load assumes for files that do not say theirs; None: this machine's."""
    return _settings["endianness"]


def set_default_load_endianness(endianness):
    """Say which byte order load assumes for files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError(
            f"set_default_load_endianness: expected a LoadEndianness or None, got {type(endianness).__name__}"
        )
    _settings["endianness"] = endianness


def get_default_mmap_options():
    """How load(..., mmap=True) maps a file: mmap.MAP_PRIVATE (changes stay in memory) or mmap.MAP_SHARED."""
    return _settings["mmap"]


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
        self.before = _settings["mmap"]
        _settings["mmap"] = flags

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _settings["mmap"] = self.before


def get_crc32_options():
    """Whether save writes checksums and load compares them."""
    return _settings["checksums"]


def set_crc32_options(compute_crc32):
    """Whether save writes checksums and load compares them. Without them large files are quicker, and damage goes
    unseen.
    """
    _settings["checksums"] = bool(compute_crc32)


def skips_data():
    return _settings["skip"]


@contextlib.contextmanager
def skip_data(materialize_fake_tensors=False):
    """Inside, save leaves room for the data of tensors without writing it, and load leaves their memory as it comes.

    >>> import io
    >>> file = io.BytesIO()
    >>> with cresset.serialization.skip_data():
    ...     cresset.save(cresset.ones(2), file)
    """
    before, _settings["skip"] = _settings["skip"], True
    try:
        yield
    finally:
        _settings["skip"] = before
